"""How many edited copies of released files come home."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from homing.collection import Collection, Match
from homing.edits import Edit
from homing.evaluation.pictures import to_image, to_view
from homing.extractors import describe
from homing.photo import Photo

Probes = int | None  # None: as many as stay fast


@dataclass(frozen=True)
class Query:
    """One edited copy and what the search returned for it."""

    source: str
    seed: int
    edit: str
    probes: Probes
    matches: list[Match]

    @property
    def came_home(self) -> bool:
        """Whether the right photo is the nearest."""
        return bool(self.matches) and self.matches[0].photo == self.source


def search_copies(
    collection: Collection,
    released: Mapping[str, Path],
    edits: Sequence[Edit],
    probes: Sequence[Probes],
    advance: Callable[[], None],
) -> list[Query]:
    """Edit each released file in each way and search for the copies; `released` maps a reference to its file.

    The same photo is edited with the same random numbers however it was released, so that sets can be compared.
    """
    queries = []
    for seed, (source, file) in enumerate(sorted(released.items())):
        image = to_image(Photo.load(file).view())
        descriptors = describe(collection.extractor, [to_view(edit(image, seed)) for edit in edits])
        for setting in probes:
            answers = collection.search_descriptors(descriptors, k=3, probes=setting)
            queries += [
                Query(source, seed, edit.label, setting, matches) for edit, matches in zip(edits, answers, strict=True)
            ]
        advance()
    return queries


def recall(queries: Sequence[Query], *, probes: Probes, edit: str | None = None) -> float:
    """The share of copies whose own photo is the nearest, of one edit or of all."""
    return fmean(
        query.came_home for query in queries if query.probes == probes and (edit is None or query.edit == edit)
    )
