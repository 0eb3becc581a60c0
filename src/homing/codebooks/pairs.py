"""Distances of all pairs of photos in blocks, and the nearest pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

NO_PAIRS = np.empty((0, 2), dtype=int)
_BLOCK_SIZE = 500  # queries per block


def pairwise_distances(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The distances (N, M) of points to each of others."""
    ours, theirs = (np.einsum("nd,nd->n", each, each) for each in (points, others))
    squared = ours[:, None] + theirs - 2 * points @ others.T
    distances: np.ndarray = np.sqrt(np.maximum(squared, 0))
    return distances


@dataclass(frozen=True)
class DistanceBlocks:
    """Blocks of the distances of photos as queries to all photos as references.

    Excluded pairs have infinite distance: a photo with itself, and `related` pairs (R, 2).
    """

    queries: np.ndarray
    references: np.ndarray
    related: np.ndarray = field(default_factory=lambda: NO_PAIRS)

    @property
    def pairs(self) -> int:
        """The number of pairs that are not excluded."""
        return len(self.queries) * (len(self.queries) - 1) - 2 * len(self.related)

    def __iter__(self) -> Iterator[np.ndarray]:
        both_ways = np.concatenate([self.related, self.related[:, ::-1]])
        for start in range(0, len(self.queries), _BLOCK_SIZE):
            distances = pairwise_distances(self.queries[start : start + _BLOCK_SIZE], self.references)
            own = np.arange(len(distances))
            distances[own, start + own] = np.inf
            in_block = both_ways[(both_ways[:, 0] >= start) & (both_ways[:, 0] < start + len(distances))]
            distances[in_block[:, 0] - start, in_block[:, 1]] = np.inf
            yield distances


def nearest_pairs(rows: np.ndarray, count: int) -> np.ndarray:
    """The nearest pairs (count, 2) of rows, nearest first; fewer if there are no more."""
    pairs, distances, start = NO_PAIRS, np.empty(0, dtype=np.float32), 0
    for block in DistanceBlocks(rows, rows):
        block[np.arange(len(rows)) <= start + np.arange(len(block))[:, None]] = np.inf  # each pair once
        farthest = np.partition(block, min(count, block.size) - 1, axis=None)[min(count, block.size) - 1]
        query, other = np.nonzero(np.isfinite(block) & (block <= farthest))
        pairs = np.concatenate([pairs, np.stack([start + query, other], axis=1)])
        distances = np.concatenate([distances, block[query, other]])
        first = np.argsort(distances, kind="stable")[:count]
        pairs, distances, start = pairs[first], distances[first], start + len(block)
    return pairs
