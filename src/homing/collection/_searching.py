"""How a collection searches: which cells, what is compared again, and how likely each match is by chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from homing.collection.folder import BACKGROUND_IDS
from homing.collection.outcome import Match
from homing.errors import HomingError
from homing.indexes import full_distances

if TYPE_CHECKING:
    from homing.collection.collection import Collection

AGAIN = 100  # of the nearest are compared again where nothing else is asked for


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a search does: among how many references, in how many of the cells, and how many it compares again.

    Either `probes` or `margin` chooses cells; where a codebook has none, `cells` and `probes` are None.
    """

    references: int
    cells: int | None
    probes: int | None
    margin: float | None
    rerank: int

    def __str__(self) -> str:
        looked = "every code"
        if self.margin is not None:
            looked = f"cells within a margin of {self.margin:g}"
        elif self.cells is not None:
            looked = f"{'all' if self.probes == self.cells else f'{self.probes:,} of'} {self.cells:,} cells"
        again = f", the nearest {self.rerank:,} compared again by descriptors" if self.rerank else ""
        return f"{self.references:,} references, {looked}{again}"


def plan_search(collection: Collection, k: int, probes: int | None, margin: float | None, rerank: int | None) -> Plan:
    """What is asked for and, where nothing is, what suits a collection of this size."""
    if k < 1 or (probes is not None and probes < 1):
        raise HomingError(f"k and probes must be at least 1, got {k} and {probes}")
    if rerank and rerank < k:
        raise HomingError(f"as many must be ranked again as are asked for, {k}, or more; got {rerank}")
    cells = collection.codebook.quantiser.ivf.nlist if collection.codebook.has_cells else None
    knows = collection.codebook.unrelated.descriptor is not None
    if rerank and not knows:
        raise HomingError(
            f"codebook '{collection.codebook.name}' was made by an earlier homing, which did not measure how far "
            "descriptors of unrelated photos lie apart; search with --rerank 0"
        )
    if rerank is None:  # who says where to look wants that and no more
        rerank = max(k, AGAIN) if knows and probes is None and margin is None else 0
    if cells is not None and margin is None:
        probes = min(probes or collection.index.fast_probes(), cells)
    return Plan(references=len(collection.index), cells=cells, probes=probes, margin=margin, rerank=rerank)


def run_search(
    collection: Collection, descriptors: Tensor, k: int, plan: Plan, false_matches: float | None
) -> list[list[Match]]:
    """The nearest references of each of (B, D) or (B, T, D) descriptors, the least likely by chance first."""
    if false_matches is not None and not 0 < false_matches <= 1:
        raise HomingError(f"a rate of false matches lies above 0 and is 1 at most, got {false_matches:g}")
    distances, ids = collection.index.search(descriptors, plan.rerank or k, plan.probes, plan.margin)
    queries = descriptors.view(len(descriptors), -1, descriptors.shape[-1]).numpy()
    tries = plan.references * queries.shape[1]
    unrelated, compared = collection.codebook.unrelated, np.zeros(ids.shape, dtype=bool)
    chances = unrelated.code.chance(distances, tries)
    if plan.rerank:
        apart, counts = full_distances(queries, ids, collection.folder.catalogue.descriptors)
        compared = counts > 0
        distances = np.where(compared, apart, distances)
        # An activated photo has two descriptors, or more: a stranger, who may come near to any, has as many tries.
        by_descriptor = np.minimum(counts * unrelated.by_descriptor.chance(distances, tries), 1)
        chances = np.where(compared, by_descriptor, chances)
    # A code lies farther from its own photo than a descriptor does: only how unlikely they are can be compared. Where
    # both are all but certain, distances decide.
    order = np.lexsort((distances, chances))[:, :k]
    found = (np.take_along_axis(each, order, 1).tolist() for each in (ids, distances, compared, chances))
    return [
        [
            _match(collection, *each)
            for each in zip(*row, strict=True)
            if each[0] >= 0 and (false_matches is None or each[3] <= false_matches)
        ]
        for row in zip(*found, strict=True)
    ]


def _match(collection: Collection, number: int, distance: float, compared: bool, chance: float) -> Match:
    if number >= BACKGROUND_IDS:
        assert collection.folder.background is not None
        name = collection.folder.background.name(number - BACKGROUND_IDS)
        return Match(name, distance, "background", chance=chance)
    source, state = collection.folder.catalogue.describe(number)
    return Match(source, distance, state, "descriptor" if compared else "code", number, chance)
