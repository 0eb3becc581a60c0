"""Recall of edited copies in a collection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import torch
from torch import Tensor

from homing.bench.protocol.copies import edited_copies
from homing.bench.protocol.release import ReleasedPhoto
from homing.collection import Match
from homing.edits import Edit
from homing.extractors import Extractor

Probes = int | None  # None: the default number of probes
Search = Callable[[Tensor], Sequence[Sequence[Match]]]


@dataclass(frozen=True)
class Query:
    """One edited copy and its matches."""

    source: str
    seed: int
    edit: str
    probes: Probes
    matches: Sequence[Match]

    @property
    def is_correct(self) -> bool:
        """Whether the nearest match is the photo the copy was made of."""
        return bool(self.matches) and self.matches[0].photo == self.source


def search_copies(
    extractor: Extractor,
    released: Sequence[ReleasedPhoto],
    edits: Sequence[Edit],
    searches: Mapping[Probes, Search],
    advance: Callable[[], None],
) -> list[Query]:
    """Edit each released file with each edit and search for the copies, at each number of probes."""
    batches = []
    for batch in edited_copies(extractor, released, edits):
        batches.append(batch)
        for _ in batch:
            advance()
    descriptors = torch.cat(batches).flatten(0, 1)
    queries = [(item, edit) for item in released for edit in edits]
    return [
        Query(item.source, item.seed, edit.label, probes, matches)
        for probes, search in searches.items()
        for (item, edit), matches in zip(queries, search(descriptors), strict=True)
    ]


def recall(queries: Sequence[Query], *, probes: Probes, edit: str | None = None) -> float:
    """The share of copies whose nearest match is correct, of one edit or of all."""
    return fmean(
        query.is_correct for query in queries if query.probes == probes and (edit is None or query.edit == edit)
    )
