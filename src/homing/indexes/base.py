"""The interface of indexes, of which all engines give the same results, and the ranking of what they find."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
from torch import Tensor

# By default a search compares at most this many codes: about half a millisecond among a million references.
DEFAULT_CODES_SCANNED = 20_000
# Lance takes a millisecond per fifty cells, and searches among few references probe thousands of cells. Up to this
# many codes, some 2 MB, are read when a dataset is opened, and searched in memory.
MAX_CODES_IN_MEMORY = 200_000

# Given ids, the full descriptors (P, D) of the references that have any, by id.
Descriptors = Callable[[np.ndarray], Mapping[int, np.ndarray]]


class Index(Protocol):
    """A searchable set of references, stored as codes of one codebook."""

    def __len__(self) -> int: ...

    def search(
        self, descriptors: Tensor, k: int, probes: int | None = None, probe_radius: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest references of each of (B, D) or (B, T, D) descriptors: distances (B, k) and ids (B, k)."""

    def default_nprobe(self) -> int:
        """The number of probes that stays fast for the size of the index."""

    def sample_ids(self, count: int, *, below: int) -> np.ndarray:
        """Up to `count` ids below `below`, sampled with a fixed seed."""


def default_nprobe(cells: int, references: int) -> int:
    """The number of probes that stays fast for this many cells and references."""
    return min(cells, max(1, DEFAULT_CODES_SCANNED * cells // max(references, 1)))


def merge(distances: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merge the results (B, T, k) of queries with T descriptors into one list (B, k), nearest first.

    Each reference keeps its smallest distance.
    """
    count, times, k = ids.shape
    distances, ids = distances.reshape(count, times * k), ids.reshape(count, times * k)
    first = np.argsort(distances, axis=1, kind="stable")
    distances, ids = np.take_along_axis(distances, first, 1), np.take_along_axis(ids, first, 1)
    # A second stable sort groups entries by reference, the nearest first.
    together = np.argsort(ids, axis=1, kind="stable")
    sorted_ids = np.take_along_axis(ids, together, 1)
    again = np.zeros(ids.shape, dtype=bool)
    np.put_along_axis(again, together[:, 1:], sorted_ids[:, 1:] == sorted_ids[:, :-1], 1)
    distances, ids = np.where(again, np.inf, distances), np.where(again, -1, ids)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, nearest, 1), np.take_along_axis(ids, nearest, 1)


def full_distances(queries: np.ndarray, ids: np.ndarray, descriptors: Descriptors) -> tuple[np.ndarray, np.ndarray]:
    """The distances of references (B, N) from (B, T, D) queries, to the nearest of their full descriptors.

    Returns the distances (B, N) and the number of descriptors each reference was compared by (B, N): infinite and 0
    if it has none.
    """
    full, counts = np.full(ids.shape, np.inf, dtype=np.float32), np.zeros(ids.shape, dtype=int)
    for i, query in enumerate(queries):
        known = descriptors(ids[i][ids[i] >= 0])
        if not known:
            continue
        counts[i] = [len(known.get(number, ())) for number in ids[i].tolist()]
        has = counts[i] > 0
        rows = np.concatenate([known[number] for number in ids[i][has].tolist()]).astype(np.float32)
        nearest = np.linalg.norm(query[:, None] - rows[None], axis=2).min(axis=0)
        full[i, has] = np.minimum.reduceat(nearest, np.cumsum(counts[i][has]) - counts[i][has])
    return full, counts


def rerank(
    queries: np.ndarray, distances: np.ndarray, ids: np.ndarray, descriptors: Descriptors
) -> tuple[np.ndarray, np.ndarray]:
    """Re-rank references (B, N) found by codes for (B, T, D) queries, by their full descriptors.

    Returns distances and ids. A reference without a descriptor keeps the distance to its code.
    """
    full, counts = full_distances(queries, ids, descriptors)
    distances = np.where(counts > 0, full, distances)
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(distances, order, 1), np.take_along_axis(ids, order, 1)
