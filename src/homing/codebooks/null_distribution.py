"""Null distribution: distances of unrelated photos, with a fitted tail below the smallest measured ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from homing.codebooks.quantizer import Quantizer
from homing.errors import CodebookError

ComparedBy = Literal["code", "descriptor"]
NO_PAIRS = np.empty((0, 2), dtype=int)
MAX_PHOTOS = 14_000  # two hundred million pairs
MIN_REFERENCES = 100  # for a density ratio
_NEAREST_SHARE = 0.01  # share of the pairs, the nearest, that are all used; the others are sampled
_SAMPLED_PAIRS = 1_000_000  # about so many are sampled for the curve beyond the nearest ones
_CURVE_POINTS = 400  # points of the stored curve, besides the nearest pairs
_TAIL_SHARE = 1e-5  # share of the pairs, the nearest, that the tail is fitted to and replaces
_MIN_TAIL_PAIRS = 500  # fewest pairs that the tail is fitted to
_FLOOR = 1e-3  # of the smallest measured share: rarer distances cannot be estimated from these pairs
_MIN_SHAPE_PAIRS = 50  # fewest pairs from which a shape is estimated
_EVEN_SHAPE = 1e6  # a shape for which all queries have the same share
# Shares of the nearest pairs at which the density ratio is measured, for many photos and for few.
_DENSITY_SHARES = (1e-3, 1e-2)
_MIN_EXPECTED_PAIRS = 100  # fewest pairs to count, if the density ratio is 1
_BLOCK_SIZE = 500  # queries per block of distances


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


@dataclass(frozen=True)
class PairDistances:
    """Distances (K,) of unrelated pairs, ascending, and the shares (K,) of all pairs that are at most this far apart.

    Some photos are near many others, so near pairs are spread unevenly over queries. The share of each query is modeled
    as gamma-distributed with these `shapes` (K,).
    """

    distances: np.ndarray
    shares: np.ndarray
    shapes: np.ndarray

    @classmethod
    def measure(cls, queries: np.ndarray, references: np.ndarray, related: np.ndarray = NO_PAIRS) -> PairDistances:
        """Measure the distances from P photos as queries (P, D) to the same photos as references (P, D).

        `related` pairs (R, 2) are excluded.
        """
        blocks = DistanceBlocks(queries, references, related)
        pairs = blocks.pairs
        # Twice as many: a pair may count twice, once in each direction.
        wanted = max(int(_NEAREST_SHARE * pairs), min(pairs, 2 * _MIN_TAIL_PAIRS))
        nearest, sample, stride = np.empty(0, np.float32), [], max(1, pairs // _SAMPLED_PAIRS)
        for block in blocks:
            sample.append(block.ravel()[::stride])
            nearest = np.concatenate([nearest, block[np.isfinite(block)]])
            if len(nearest) > wanted:
                nearest = np.partition(nearest, wanted - 1)[:wanted]
        nearest.sort()
        curve = np.geomspace(1, wanted, _CURVE_POINTS).astype(int) - 1
        ranks = np.unique(np.concatenate([np.arange(min(_MIN_TAIL_PAIRS, wanted)), curve]))
        shares = np.linspace(wanted / pairs, 1, _CURVE_POINTS)[1:] if wanted < pairs else np.empty(0)
        others = np.concatenate(sample)
        farther = np.quantile(others[np.isfinite(others)], shares) if len(shares) else shares
        distances = np.maximum.accumulate(np.concatenate([nearest[ranks], farther]).astype(np.float64))
        shares = np.concatenate([(ranks + 1) / pairs, shares])
        last = np.append(np.diff(distances) > 0, True)  # each distance once, with its largest share
        distances, shares = distances[last], shares[last]
        return cls(distances, shares, _shapes(blocks, distances, shares))

    def cdf(self, distances: np.ndarray) -> np.ndarray:
        """The share of unrelated pairs at most this far apart: the curve, and the fitted tail below its edge."""
        edge, shape, scale = self._tail
        within = np.interp(distances, self.distances[edge:], np.log(self.shares[edge:]))
        beyond = np.maximum(self.distances[edge] - distances, 0) / scale
        with np.errstate(divide="ignore"):  # log of 0 at a distance of 0
            tail = np.log1p(np.maximum(shape * beyond, -1)) / shape if shape else beyond
        shares: np.ndarray = np.maximum(np.exp(within - tail), _FLOOR * self.shares[0])
        return shares

    def false_match_probability(self, distances: np.ndarray, comparisons: float | np.ndarray) -> np.ndarray:
        """Probability that the nearest of `comparisons` references to an unrelated query is at most this far away."""
        # The mean of 1 - (1 - share) ** comparisons over the gamma distribution of the shares of queries.
        hits = -comparisons * np.log1p(-np.minimum(self.cdf(distances), 1 - 1e-12))
        shapes = np.interp(distances, self.distances, self.shapes)
        probabilities: np.ndarray = -np.expm1(-shapes * np.log1p(hits / shapes))
        return probabilities

    @property
    def is_valid(self) -> bool:
        """Whether distances and shares are finite, positive and ascending."""
        rows = np.stack([self.distances, self.shares, self.shapes])
        in_order = bool((np.diff(rows[:2]) >= 0).all() and (rows[1:] > 0).all() and (rows[1] <= 1).all())
        return rows.shape[1] > 0 and in_order and bool(np.isfinite(rows).all())

    @cached_property
    def _tail(self) -> tuple[int, float, float]:
        """A generalized Pareto tail fitted by probability-weighted moments: index of its edge, shape, scale."""
        if self.distances[0] == 0:  # no distance is smaller than the measured ones: no tail is needed
            return 0, 0.0, 1.0
        fitted = max(_TAIL_SHARE, _MIN_TAIL_PAIRS * self.shares[0])
        edge = int(np.searchsorted(self.shares, min(fitted, self.shares[-1])))
        near, shares = self.distances[: edge + 1], self.shares[: edge + 1] / self.shares[edge]
        # Probability-weighted moments of the distance below the edge.
        mean, weighted = _area(near, shares), _area(near, shares**2) / 2
        if mean - 2 * weighted < 1e-9:  # all distances equal the edge
            return edge, 0.0, 1e-6
        # The tail must extend to a distance of 0, however light it is.
        shape = max(2 - mean / (mean - 2 * weighted), -mean / float(self.distances[edge] - mean))
        return edge, shape, mean * (1 - shape)


@dataclass(frozen=True)
class NullDistribution:
    """Distances from unrelated photos as queries to the codes of others, and to their descriptors."""

    code: PairDistances
    descriptor: PairDistances

    @classmethod
    def measure(cls, quantizer: Quantizer, photos: np.ndarray, related: np.ndarray = NO_PAIRS) -> NullDistribution:
        """Measure both distributions on (P, D) descriptors of distinct photos, at most MAX_PHOTOS of them.

        `related` pairs (R, 2) are excluded.
        """
        if len(photos) < 2:
            raise CodebookError(f"a null distribution needs at least two photos, got {len(photos)}")
        sample = np.random.default_rng(0).permutation(len(photos))[:MAX_PHOTOS]
        rows = np.ascontiguousarray(photos[sample], dtype=np.float32)
        positions = np.full(len(photos), -1)
        positions[sample] = np.arange(len(sample))
        related = positions[related]
        related = related[(related >= 0).all(axis=1)]
        return cls(
            PairDistances.measure(*quantizer.comparison_points(rows, rows), related),
            PairDistances.measure(rows, rows, related),
        )

    def density_ratio(self, photos: np.ndarray) -> float:
        """How many times as often photos with (P, D) descriptors are near each other as the measured photos.

        At least 1; 1 for fewer than MIN_REFERENCES photos.
        """
        pairs = len(photos) * (len(photos) - 1)
        if len(photos) < MIN_REFERENCES:
            return 1.0
        # Nearer pairs, in the tail, are not counted: many of them are related photos of one series.
        share = float(np.clip(_MIN_EXPECTED_PAIRS / pairs, *_DENSITY_SHARES))
        nearest, farthest = np.interp([_TAIL_SHARE, share], self.descriptor.shares, self.descriptor.distances)
        counted = sum(int(((block > nearest) & (block <= farthest)).sum()) for block in DistanceBlocks(photos, photos))
        return max(counted / (pairs * (share - _TAIL_SHARE)), 1.0)

    def false_match_probability(
        self, compared: ComparedBy, distances: np.ndarray, comparisons: int, density_ratio: float | np.ndarray = 1.0
    ) -> np.ndarray:
        """Probability that the nearest of `comparisons` references to an unrelated query is at most this far away.

        For descriptors, a density ratio multiplies the comparisons. Codes are rarely near each other and ignore it.
        """
        if compared == "code":
            return self.code.false_match_probability(distances, comparisons)
        return self.descriptor.false_match_probability(distances, comparisons * density_ratio)

    @property
    def is_valid(self) -> bool:
        """Whether distances and shares are finite, positive and ascending."""
        return self.code.is_valid and self.descriptor.is_valid

    def to_tensors(self) -> dict[str, np.ndarray]:
        """The tensors of a codebook's file."""
        return {
            f"null_distribution.{name}": np.stack([each.distances, each.shares, each.shapes])
            for name, each in (("code", self.code), ("descriptor", self.descriptor))
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray]) -> NullDistribution:
        """The null distribution in the tensors of a codebook's file."""
        code, descriptor = (PairDistances(*tensors[f"null_distribution.{name}"]) for name in ("code", "descriptor"))
        return cls(code, descriptor)


def _area(x: np.ndarray, y: np.ndarray) -> float:
    return float((np.diff(x) * (y[1:] + y[:-1])).sum() / 2)


def _shapes(blocks: DistanceBlocks, distances: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The shapes (K,) of the gamma distributions of queries' shares, from second moments."""
    photos, pairs = len(blocks.queries), blocks.pairs
    fitted_at = np.flatnonzero(
        (shares >= min(_MIN_SHAPE_PAIRS / pairs, shares[-1])) & (shares <= max(_NEAREST_SHARE, shares[0]))
    )
    if photos < 3 or not len(fitted_at):
        return np.full(len(distances), _EVEN_SHAPE)
    fitted_at = fitted_at[:: max(len(fitted_at) // 40, 1)]
    joint_counts = np.zeros(len(fitted_at))
    for block in blocks:
        query, other = np.nonzero(block <= distances[fitted_at[-1]])
        positions = np.searchsorted(distances[fitted_at], block[query, other])
        counts = np.zeros((len(block), len(fitted_at)))
        np.add.at(counts, (query, positions), 1)
        counts = counts.cumsum(axis=1)
        joint_counts += (counts * (counts - 1)).sum(axis=0)
    second_moments = joint_counts / (pairs * (photos - 2))
    variances = second_moments / np.square(shares[fitted_at]) - 1
    shapes = 1 / np.maximum(variances, 1 / _EVEN_SHAPE)
    interpolated: np.ndarray = np.exp(np.interp(np.log(shares), np.log(shares[fitted_at]), np.log(shapes)))
    return interpolated
