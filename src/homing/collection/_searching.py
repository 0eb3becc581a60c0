"""How a collection searches: which cells, what is compared again, and how likely each match is by chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from homing.codebooks import Codebook
from homing.collection.catalogue import State
from homing.collection.folder import BACKGROUND_IDS, Folder
from homing.collection.outcome import Match
from homing.errors import CollectionError, HomingError
from homing.indexes import Index, full_distances

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


def plan_search(
    index: Index, codebook: Codebook, k: int, probes: int | None, margin: float | None, rerank: int | None
) -> Plan:
    """What is asked for and, where nothing is, what suits a collection of this size."""
    if k < 1 or (probes is not None and probes < 1):
        raise HomingError(f"k and probes must be at least 1, got {k} and {probes}")
    if rerank and rerank < k:
        raise HomingError(f"as many must be ranked again as are asked for, {k}, or more; got {rerank}")
    knows = codebook.unrelated.descriptor is not None
    if rerank and not knows:
        raise HomingError(
            f"codebook '{codebook.name}' was made by an earlier homing, which did not measure how far "
            "descriptors of unrelated photos lie apart; search with --rerank 0"
        )
    if rerank is None:  # who says where to look wants that and no more
        rerank = max(k, AGAIN) if knows and probes is None and margin is None else 0
    cells = codebook.quantiser.ivf.nlist if codebook.has_cells else None
    if cells is None:
        probes = None
    elif margin is None:
        probes = min(probes or index.fast_probes(), cells)
    return Plan(references=len(index), cells=cells, probes=probes, margin=margin, rerank=rerank)


def run_search(
    folder: Folder, index: Index, descriptors: Tensor, k: int, plan: Plan, false_matches: float | None
) -> list[list[Match]]:
    """The nearest references of each of (B, D) or (B, T, D) descriptors, the rarest distance first."""
    if false_matches is not None and not 0 < false_matches <= 1:
        raise HomingError(f"a rate of false matches lies above 0 and is 1 at most, got {false_matches:g}")
    distances, ids = index.search(descriptors, plan.rerank or k, plan.probes, plan.margin)
    queries = (descriptors if descriptors.ndim == 3 else descriptors[:, None]).numpy()
    tries = plan.references * queries.shape[1]
    counts = np.zeros(ids.shape, dtype=int)
    if plan.rerank:
        apart, counts = _compared(folder, queries, ids)
        distances = np.where(counts > 0, apart, distances)
    compared, chances = counts > 0, np.empty(ids.shape)
    unrelated = folder.codebook.unrelated
    chances[~compared] = unrelated.chance("code", distances[~compared], tries)
    if compared.any():
        chances[compared] = unrelated.chance("descriptor", distances[compared], tries, _likeness(folder, index))
    # A code lies farther from its own photo than a descriptor does: only how unlikely they are can be compared. Where
    # both are all but certain, distances decide. What is none comes last.
    order = np.lexsort((distances, chances, ids < 0))[:, :k]
    # An activated photo has two descriptors, or more: a stranger, who may come near to any, has as many tries. That
    # makes none less near.
    chances = np.minimum(np.maximum(counts, 1) * chances, 1)
    ids, distances, compared, chances = (
        np.take_along_axis(each, order, 1) for each in (ids, distances, compared, chances)
    )
    kept = ids >= 0 if false_matches is None else (ids >= 0) & (chances <= false_matches)
    known = folder.catalogue.describe_all(np.unique(ids[kept & (ids < BACKGROUND_IDS)]).tolist())
    found = (each.tolist() for each in (kept, ids, distances, compared, chances))
    return [
        [_match(folder, known, *each) for is_kept, *each in zip(*row, strict=True) if is_kept]
        for row in zip(*found, strict=True)
    ]


def _compared(folder: Folder, queries: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distances (B, N) of queries to the descriptors that the catalogue keeps, and how many (B, N) these are."""
    try:
        apart, counts = full_distances(queries, ids, folder.catalogue.descriptors)
    except (ValueError, TypeError) as error:  # of NumPy: their lengths are not that of the queries
        raise _damaged(folder) from error
    if np.isnan(apart).any():
        raise _damaged(folder)
    return apart, counts


def _likeness(folder: Folder, index: Index) -> float:
    try:
        return folder.likeness.now(index)
    except (ValueError, TypeError) as error:  # as above
        raise _damaged(folder) from error


def _damaged(folder: Folder) -> CollectionError:
    path = folder.path
    return CollectionError(
        f"{path} holds descriptors that are none of its network; mend it with: homing check {path} --repair"
    )


def _match(
    folder: Folder, known: Mapping[int, tuple[str, State]], number: int, distance: float, compared: bool, chance: float
) -> Match:
    if number >= BACKGROUND_IDS:
        assert folder.background is not None
        return Match(folder.background.name(number - BACKGROUND_IDS), distance, "background", chance=chance)
    return Match(known[number][0], distance, known[number][1], "descriptor" if compared else "code", number, chance)
