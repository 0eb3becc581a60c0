"""After the comparison of codes: merge the variants of a query, and re-rank by full descriptors."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

# Given ids, the full descriptors (P, D) of the references that have any, by id.
Descriptors = Callable[[np.ndarray], Mapping[int, np.ndarray]]


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
