"""What comes after codes were compared: several descriptions of one query, and full descriptors in place of codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

# The full descriptors (D,) of those of some references that have one, by their ids.
Descriptors = Callable[[np.ndarray], Mapping[int, np.ndarray]]


def merge(distances: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One list (B, k) of the lists (B, T, k) of queries that were described T times, nearest first.

    Each reference keeps its smallest distance.
    """
    count, _, k = ids.shape
    distances, ids = distances.reshape(count, -1), ids.reshape(count, -1)
    first = np.argsort(distances, axis=1, kind="stable")
    distances, ids = np.take_along_axis(distances, first, 1), np.take_along_axis(ids, first, 1)
    # A second sort, which is stable too, puts those of one reference side by side, the nearest before the others.
    together = np.argsort(ids, axis=1, kind="stable")
    sorted_ids = np.take_along_axis(ids, together, 1)
    again = np.zeros(ids.shape, dtype=bool)
    np.put_along_axis(again, together[:, 1:], sorted_ids[:, 1:] == sorted_ids[:, :-1], 1)
    distances, ids = np.where(again, np.inf, distances), np.where(again, -1, ids)
    left = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, left, 1), np.take_along_axis(ids, left, 1)


def compare_again(
    queries: np.ndarray, distances: np.ndarray, ids: np.ndarray, descriptors: Descriptors
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The references (B, N) that codes found for (B, T, D) queries, in the order of their full descriptors.

    Gives distances and ids, and which of the distances (B, N) are those of descriptors: a reference that has none keeps
    the distance of its code.
    """
    distances, ids, compared = distances.copy(), ids.copy(), np.zeros(ids.shape, dtype=bool)
    for place, query in enumerate(queries):
        known = descriptors(ids[place][ids[place] >= 0])
        compared[place] = [number in known for number in ids[place].tolist()]
        if known:
            rows = np.stack([known[number] for number in ids[place][compared[place]].tolist()])
            apart = np.linalg.norm(query[:, None] - rows[None].astype(np.float32), axis=2)
            distances[place, compared[place]] = apart.min(axis=0)
        order = np.argsort(distances[place], kind="stable")
        for each in (distances, ids, compared):
            each[place] = each[place, order]
    return distances, ids, compared
