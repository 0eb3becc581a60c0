"""Pairs of photos by their distances: all of them in turn, and the nearest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

NO_PAIRS = np.empty((0, 2), dtype=int)
_AT_ONCE = 500  # photos whose distances to all others are held in memory


def distances_between(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The distances (N, M) of points to each of others."""
    ours, theirs = (np.einsum("nd,nd->n", each, each) for each in (points, others))
    squared = ours[:, None] + theirs - 2 * points @ others.T
    distances: np.ndarray = np.sqrt(np.maximum(squared, 0))
    return distances


@dataclass(frozen=True)
class Tables:
    """The distances of photos as queries to all as references, some queries at once; infinite where none counts.

    A photo to itself does not count, nor do pairs (R, 2) that are related.
    """

    asked: np.ndarray
    kept: np.ndarray
    related: np.ndarray = field(default_factory=lambda: NO_PAIRS)

    @property
    def pairs(self) -> int:
        """How many count."""
        return len(self.asked) * (len(self.asked) - 1) - 2 * len(self.related)

    def __iter__(self) -> Iterator[np.ndarray]:
        both_ways = np.concatenate([self.related, self.related[:, ::-1]])
        for start in range(0, len(self.asked), _AT_ONCE):
            apart = distances_between(self.asked[start : start + _AT_ONCE], self.kept)
            own = np.arange(len(apart))
            apart[own, start + own] = np.inf
            here = both_ways[(both_ways[:, 0] >= start) & (both_ways[:, 0] < start + len(apart))]
            apart[here[:, 0] - start, here[:, 1]] = np.inf
            yield apart


def nearest_pairs(rows: np.ndarray, count: int) -> np.ndarray:
    """The pairs (count, 2) of rows that lie nearest to each other, the nearest first; fewer if there are no more."""
    pairs, apart, start = NO_PAIRS, np.empty(0, dtype=np.float32), 0
    for table in Tables(rows, rows):
        table[np.arange(len(rows)) <= start + np.arange(len(table))[:, None]] = np.inf  # each once
        farthest = np.partition(table, min(count, table.size) - 1, axis=None)[min(count, table.size) - 1]
        query, other = np.nonzero(np.isfinite(table) & (table <= farthest))
        pairs = np.concatenate([pairs, np.stack([start + query, other], axis=1)])
        apart = np.concatenate([apart, table[query, other]])
        first = np.argsort(apart, kind="stable")[:count]
        pairs, apart, start = pairs[first], apart[first], start + len(table)
    return pairs
