"""How near unrelated photos come: distances of pairs of them and, beyond the nearest of those, a fitted tail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from homing.codebooks.quantiser import Quantiser
from homing.errors import CodebookError

MOST_PHOTOS = 14_000  # two hundred million pairs
_AT_ONCE = 500  # photos whose distances to all others are held in memory
_NEAR = 0.01  # the share of pairs, the nearest, that are all looked at; of the others a sample tells
_SAMPLED = 101  # one pair in so many
_POINTS = 400  # that a curve is kept as, beside the nearest pairs
_TAIL = 1e-5  # the share of pairs, the nearest, to which the tail is fitted, and for which it stands
_FEWEST = 500  # to which it is fitted
_BEYOND = 1e-3  # of the smallest share that was seen: what is rarer nobody can tell from these pairs
_TOLD = 50  # pairs that tell how unevenly they fall to queries, at least
_EVEN = 1e6  # a shape that makes no difference


@dataclass(frozen=True)
class PairDistances:
    """Distances (K,) of unrelated pairs, ascending, and the shares (K,) of all pairs that lie no farther apart.

    Some photos lie near many others: of one such query many pairs count where it has one nearest. How near each comes
    to its share of the pairs is spread over queries as a gamma distribution, of which these are the shapes (K,).
    """

    distances: np.ndarray
    shares: np.ndarray
    shapes: np.ndarray

    @classmethod
    def measure(cls, asked: np.ndarray, kept: np.ndarray) -> PairDistances:
        """From the points (P, D) that stand for P photos as queries to those that stand for them as references."""
        photos = len(asked)
        pairs = photos * (photos - 1)
        wanted = max(int(_NEAR * pairs), min(pairs, 2 * _FEWEST))  # a pair may lie both ways as near
        nearest, sample = np.empty(0, np.float32), []
        for apart in _tables(asked, kept):
            sample.append(apart.ravel()[::_SAMPLED])
            nearest = np.concatenate([nearest, apart[np.isfinite(apart)]])
            if len(nearest) > wanted:
                nearest = np.partition(nearest, wanted - 1)[:wanted]
        nearest.sort()
        ranks = np.concatenate([np.arange(min(_FEWEST, wanted)), np.geomspace(1, wanted, _POINTS).astype(int) - 1])
        ranks = np.unique(ranks)
        shares = np.linspace(wanted / pairs, 1, _POINTS)[1:] if wanted < pairs else np.empty(0)
        others = np.concatenate(sample)
        farther = np.quantile(others[np.isfinite(others)], shares) if len(shares) else shares
        distances = np.maximum.accumulate(np.concatenate([nearest[ranks], farther]).astype(np.float64))
        shares = np.concatenate([(ranks + 1) / pairs, shares])
        distances, shares = _distinct(distances, shares)
        return cls(distances, shares, _shapes(asked, kept, distances, shares))

    @classmethod
    def of_each(cls, distances: np.ndarray) -> PairDistances:
        """From the distances of all pairs there are, ascending; nothing is known of whose they are."""
        shares = np.arange(1, len(distances) + 1) / len(distances)
        distances, shares = _distinct(distances.astype(np.float64), shares)
        return cls(distances, shares, np.full(len(distances), _EVEN))

    def share(self, distances: np.ndarray) -> np.ndarray:
        """How many of all unrelated pairs lie no farther apart than this: the curve, below its edge the tail."""
        edge, shape, scale = self._tail
        within = np.interp(distances, self.distances[edge:], np.log(self.shares[edge:]))
        beyond = np.maximum(self.distances[edge] - distances, 0) / scale
        with np.errstate(divide="ignore"):  # at a distance of 0
            tail = np.log1p(np.maximum(shape * beyond, -1)) / shape if shape else beyond
        shares: np.ndarray = np.maximum(np.exp(within - tail), _BEYOND * self.shares[0])
        return shares

    def chance(self, distances: np.ndarray, tries: int) -> np.ndarray:
        """How likely the nearest of so many references lies no farther from a photo that is related to none."""
        # The share of each query is its own: the mean of 1 - (1 - share) ** tries over their gamma distribution.
        hits = -tries * np.log1p(-np.minimum(self.share(distances), 1 - 1e-12))
        shapes = np.interp(distances, self.distances, self.shapes)
        chances: np.ndarray = -np.expm1(-shapes * np.log1p(hits / shapes))
        return chances

    @property
    def sound(self) -> bool:
        """Whether these are distances and shares in order, as they were measured."""
        rows = np.stack([self.distances, self.shares, self.shapes])
        in_order = bool((np.diff(rows[:2]) >= 0).all() and (rows[1:] > 0).all() and (rows[1] <= 1).all())
        return rows.shape[1] > 0 and in_order and bool(np.isfinite(rows).all())

    @cached_property
    def _tail(self) -> tuple[int, float, float]:
        """A generalised Pareto tail, by probability-weighted moments: the place of its edge, its shape and scale."""
        if self.distances[0] == 0:  # nothing lies nearer than what was seen: the curve tells all
            return 0, 0.0, 1.0
        fitted = max(_TAIL, _FEWEST * self.shares[0])
        edge = int(np.searchsorted(self.shares, min(fitted, self.shares[-1])))
        near, left = self.distances[: edge + 1], self.shares[: edge + 1] / self.shares[edge]
        # Of how far pairs lie below the edge: the mean, and that of each times the share that lies farther below.
        mean, weighted = _area(near, left), _area(near, left**2) / 2
        if mean - 2 * weighted < 1e-9:  # all lie on the edge
            return edge, 0.0, 1e-6
        # However light, a tail does not end before a distance of 0, at which any two photos may lie.
        shape = max(2 - mean / (mean - 2 * weighted), -mean / float(self.distances[edge] - mean))
        return edge, shape, mean * (1 - shape)


@dataclass(frozen=True)
class Unrelated:
    """Distances of unrelated photos as queries to the codes of others, and to their descriptors.

    Codebooks of an earlier homing know the first alone.
    """

    code: PairDistances
    descriptor: PairDistances | None

    @classmethod
    def measure(cls, quantiser: Quantiser, photos: np.ndarray) -> Unrelated:
        """From (P, D) descriptors of distinct photos, of which so many are taken as are enough."""
        if len(photos) < 2:
            raise CodebookError("how far unrelated photos lie apart takes two at least; give it more photos")
        some = np.random.default_rng(0).permutation(len(photos))[:MOST_PHOTOS]
        rows = np.ascontiguousarray(photos[some], dtype=np.float32)
        return cls(PairDistances.measure(*quantiser.compared(rows, rows)), PairDistances.measure(rows, rows))

    @property
    def by_descriptor(self) -> PairDistances:
        """Those to descriptors, where they are known to be known."""
        assert self.descriptor is not None, "nothing is compared by descriptors of which nothing is known"
        return self.descriptor

    @property
    def sound(self) -> bool:
        """Whether these are distances and shares in order, as they were measured."""
        return all(each.sound for each in (self.code, self.descriptor) if each is not None)

    def to_tensors(self) -> dict[str, np.ndarray]:
        """What a codebook's file keeps of it."""
        both = {"code": self.code, "descriptor": self.descriptor}
        return {
            f"unrelated.{name}": np.stack([each.distances, each.shares, each.shapes])
            for name, each in both.items()
            if each is not None
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray]) -> Unrelated:
        """What a codebook's file kept; a file of an earlier homing holds the distances to codes, one by one."""
        if "unrelated" in tensors:
            return cls(PairDistances.of_each(tensors["unrelated"]), None)
        kept = tensors.get("unrelated.descriptor")
        return cls(PairDistances(*tensors["unrelated.code"]), None if kept is None else PairDistances(*kept))


def distances_between(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The distances (N, M) of points to each of others."""
    squared = np.square(points).sum(axis=1)[:, None] + np.square(others).sum(axis=1) - 2 * points @ others.T
    distances: np.ndarray = np.sqrt(np.maximum(squared, 0))
    return distances


def _distinct(distances: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of equal distances the last share: no pair lies between them."""
    last = np.append(np.diff(distances) > 0, True)
    return distances[last], shares[last]


def _area(places: np.ndarray, heights: np.ndarray) -> float:
    return float((np.diff(places) * (heights[1:] + heights[:-1])).sum() / 2)


def _tables(asked: np.ndarray, kept: np.ndarray) -> Iterator[np.ndarray]:
    """The distances of some photos to all, part by part; infinite to themselves."""
    for start in range(0, len(asked), _AT_ONCE):
        apart = distances_between(asked[start : start + _AT_ONCE], kept)
        own = np.arange(len(apart))
        apart[own, start + own] = np.inf
        yield apart


def _shapes(asked: np.ndarray, kept: np.ndarray, distances: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The shapes (K,) of the gamma distributions that shares are spread over queries by, from their second moments."""
    photos = len(asked)
    pairs = photos * (photos - 1)
    told = np.flatnonzero((shares >= min(_TOLD / pairs, shares[-1])) & (shares <= max(_NEAR, shares[0])))
    if photos < 3 or not len(told):
        return np.full(len(distances), _EVEN)
    told = told[:: max(len(told) // 40, 1)]
    together = np.zeros(len(told))
    for apart in _tables(asked, kept):
        query, other = np.nonzero(apart <= distances[told[-1]])
        places = np.searchsorted(distances[told], apart[query, other])
        counts = np.zeros((len(apart), len(told)))
        np.add.at(counts, (query, places), 1)
        counts = counts.cumsum(axis=1)
        together += (counts * (counts - 1)).sum(axis=0)
    squares = together / (pairs * (photos - 2))
    uneven = squares / np.square(shares[told]) - 1
    shapes = 1 / np.maximum(uneven, 1 / _EVEN)
    spread: np.ndarray = np.exp(np.interp(np.log(shares), np.log(shares[told]), np.log(shapes)))
    return spread
