"""Search of a collection: choice of cells, re-ranking, and false-match probabilities."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from homing.codebooks import Codebook
from homing.collection.folder import FIRST_DISTRACTOR_ID, Folder
from homing.collection.references import State
from homing.collection.results import Match, SearchResult, SearchSettings
from homing.errors import CollectionError, HomingError, check_type
from homing.indexes import Index, full_distances

DEFAULT_RERANK = 100  # number of nearest references that are re-ranked by default


def search_settings(
    index: Index,
    codebook: Codebook,
    k: int,
    probes: int | None,
    probe_radius: float | None,
    rerank: int | None,
    *,
    variants: bool = False,
) -> SearchSettings:
    """Complete the search options with defaults for the size of the collection."""
    check_type("k", k, "a whole number")
    for name, value in (("probes", probes), ("rerank", rerank)):
        if value is not None:
            check_type(name, value, "a whole number")
    if probe_radius is not None:
        check_type("probe_radius", probe_radius, "a number")
    if k < 1 or (probes is not None and probes < 1):
        raise HomingError(f"k and probes must be at least 1, got {k} and {probes}")
    if rerank and rerank < k:
        raise HomingError(f"rerank must be at least k ({k}), got {rerank}")
    if rerank is None:  # explicit cells turn the default re-ranking off
        rerank = max(k, DEFAULT_RERANK) if probes is None and probe_radius is None else 0
    cells = codebook.quantizer.ivf.nlist if codebook.has_cells else None
    if cells is None:
        probes = None
    elif probe_radius is None:
        probes = min(probes or index.default_nprobe(), cells)
    return SearchSettings(
        references=len(index), cells=cells, probes=probes, probe_radius=probe_radius, rerank=rerank, variants=variants
    )


def run_search(
    folder: Folder, index: Index, descriptors: Tensor, k: int, settings: SearchSettings, max_false_match: float | None
) -> list[SearchResult]:
    """The nearest references of each of (B, D) or (B, T, D) descriptors, the least likely to be false first."""
    if max_false_match is not None:
        check_type("max_false_match", max_false_match, "a number")
    if max_false_match is not None and not 0 < max_false_match <= 1:
        raise HomingError(f"max_false_match must be above 0 and at most 1, got {max_false_match:g}")
    distances, ids = index.search(descriptors, settings.rerank or k, settings.probes, settings.probe_radius)
    queries = (descriptors if descriptors.ndim == 3 else descriptors[:, None]).numpy()
    comparisons = settings.references * queries.shape[1]
    counts = np.zeros(ids.shape, dtype=int)
    if settings.rerank:
        exact, counts = _descriptor_distances(folder, queries, ids)
        distances = np.where(counts > 0, exact, distances)
    is_reranked, probabilities = counts > 0, np.empty(ids.shape)
    null_distribution = folder.codebook.null_distribution
    probabilities[~is_reranked] = null_distribution.false_match_probability(
        "code", distances[~is_reranked], comparisons
    )
    if is_reranked.any():
        probabilities[is_reranked] = null_distribution.false_match_probability(
            "descriptor", distances[is_reranked], comparisons, _density_ratio(folder, index)
        )
    # A code is farther from its own photo than a descriptor is, so distances to the two are not comparable, but
    # probabilities are. Distances break ties. Empty results (negative ids) come last.
    order = np.lexsort((distances, probabilities, ids < 0))[:, :k]
    # An activated photo has two or more descriptors. An unrelated query can match any of them by accident, so the
    # probability is multiplied by their number. The order is already fixed and does not change.
    probabilities = np.minimum(np.maximum(counts, 1) * probabilities, 1)
    ids, distances, is_reranked, probabilities = (
        np.take_along_axis(each, order, 1) for each in (ids, distances, is_reranked, probabilities)
    )
    kept = ids >= 0 if max_false_match is None else (ids >= 0) & (probabilities <= max_false_match)
    known = folder.catalog.sources_and_states(np.unique(ids[kept & (ids < FIRST_DISTRACTOR_ID)]).tolist())
    found = (each.tolist() for each in (kept, ids, distances, is_reranked, probabilities))
    return [
        SearchResult(
            matches=tuple(_match(folder, known, *each) for is_kept, *each in zip(*row, strict=True) if is_kept),
            settings=settings,
        )
        for row in zip(*found, strict=True)
    ]


def _descriptor_distances(folder: Folder, queries: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distances (B, N) of queries to the stored descriptors, and the number of these per reference (B, N)."""
    try:
        exact, counts = full_distances(queries, ids, folder.catalog.descriptors)
    except (ValueError, TypeError) as error:  # from NumPy: descriptors of a different length than the queries
        raise _damaged(folder) from error
    if np.isnan(exact).any():
        raise _damaged(folder)
    return exact, counts


def _density_ratio(folder: Folder, index: Index) -> float:
    try:
        return folder.density_ratio.value(index)
    except (ValueError, TypeError) as error:  # as above
        raise _damaged(folder) from error


def _damaged(folder: Folder) -> CollectionError:
    path = folder.path
    return CollectionError(f"{path} holds descriptors of another network; repair it with: homing check {path} --repair")


def _match(
    folder: Folder,
    known: Mapping[int, tuple[str, State]],
    number: int,
    distance: float,
    is_reranked: bool,
    false_match_probability: float,
) -> Match:
    if number >= FIRST_DISTRACTOR_ID:
        assert folder.distractors is not None
        return Match(
            photo=folder.distractors.name(number - FIRST_DISTRACTOR_ID),
            distance=distance,
            state="distractor",
            false_match_probability=false_match_probability,
        )
    source, state = known[number]
    return Match(
        photo=source,
        distance=distance,
        state=state,
        compared="descriptor" if is_reranked else "code",
        id=number,
        false_match_probability=false_match_probability,
    )
