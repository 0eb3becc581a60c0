"""How many edited copies of released files come home."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Literal

import torch
from torch import Tensor

from homing._parallel import map_ahead
from homing.collection import Match
from homing.edits import Edit
from homing.evaluation.pictures import to_image, to_view
from homing.extractors import Extractor
from homing.extractors.base import images_at_once
from homing.photo import Photo

Probes = int | Literal["exact"] | None  # None: as many as stay fast
Search = Callable[[Tensor], list[list[Match]]]


@dataclass(frozen=True)
class Released:
    """A file that is out in the world, and the reference it should come home to.

    The seed is the photo's, however it was released: sets whose copies were made with the same random numbers compare.
    """

    source: str
    file: Path
    seed: int


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
    extractor: Extractor,
    released: Sequence[Released],
    edits: Sequence[Edit],
    searches: Mapping[Probes, Search],
    advance: Callable[[], None],
) -> list[Query]:
    """Edit each released file in each way and search for the copies, at each number of probes."""

    def edited(item: Released) -> Tensor:
        image = to_image(Photo.load(item.file).view())
        return torch.stack([extractor.resize(to_view(edit(image, item.seed))) for edit in edits])

    descriptors = []
    for copies in describe_stacks(extractor, map_ahead(edited, released)):
        descriptors.append(copies)
        advance()
    asked = [(item, edit) for item in released for edit in edits]
    return [
        Query(item.source, item.seed, edit.label, probes, matches)
        for probes, search in searches.items()
        for (item, edit), matches in zip(asked, search(torch.cat(descriptors)), strict=True)
    ]


def describe_stacks(extractor: Extractor, stacks: Iterable[Tensor]) -> Iterator[Tensor]:
    """Descriptors (E, dim) of each stack of (E, 3, size, size) squares; the network sees several stacks at once."""
    coming = iter(stacks)
    for first in coming:
        batch = torch.stack([first, *islice(coming, max(images_at_once(extractor) // len(first) - 1, 0))])
        with torch.inference_mode():
            descriptors = extractor(batch.flatten(0, 1).to(extractor.device)).cpu()
        yield from descriptors.view(*batch.shape[:2], -1)


def recall(queries: Sequence[Query], *, probes: Probes, edit: str | None = None) -> float:
    """The share of copies whose own photo is the nearest, of one edit or of all."""
    return fmean(
        query.came_home for query in queries if query.probes == probes and (edit is None or query.edit == edit)
    )
