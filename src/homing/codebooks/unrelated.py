"""How near unrelated photos come: distances of pairs of them and, beyond the nearest of those, a fitted tail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from homing.codebooks.quantiser import Quantiser
from homing.errors import CodebookError

MOST_PHOTOS = 10_000  # a hundred million pairs
_AT_ONCE = 500  # photos whose distances to all others are held in memory
_NEAR = 0.01  # the share of pairs, the nearest, that are all looked at; of the others a sample tells
_SAMPLED = 101  # one pair in so many
_POINTS = 400  # that a curve is kept as, beside the nearest pairs
_FITTED = 500  # the nearest pairs, to which the tail is fitted
_SEEN = 50  # pairs that lie as near, at least, where the curve is believed and not the tail
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
        wanted = max(int(_NEAR * pairs), min(pairs, _FITTED))
        nearest, sample = np.empty(0, np.float32), []
        for apart in _tables(asked, kept):
            sample.append(apart.ravel()[::_SAMPLED])
            nearest = np.concatenate([nearest, apart[np.isfinite(apart)]])
            if len(nearest) > wanted:
                nearest = np.partition(nearest, wanted - 1)[:wanted]
        nearest.sort()
        ranks = np.concatenate([np.arange(min(_FITTED, wanted)), np.geomspace(1, wanted, _POINTS).astype(int) - 1])
        ranks = np.unique(ranks)
        shares = np.linspace(wanted / pairs, 1, _POINTS)[1:] if wanted < pairs else np.empty(0)
        others = np.concatenate(sample)
        farther = np.quantile(others[np.isfinite(others)], shares) if len(shares) else shares
        distances = np.maximum.accumulate(np.concatenate([nearest[ranks], farther]).astype(np.float64))
        shares = np.concatenate([(ranks + 1) / pairs, shares])
        last = np.append(np.diff(distances) > 0, True)  # of equal ones: no pair lies between them
        distances, shares = distances[last], shares[last]
        return cls(distances, shares, _shapes(asked, kept, distances, shares))

    @classmethod
    def of_each(cls, distances: np.ndarray) -> PairDistances:
        """From the distances of all pairs there are, ascending; nothing is known of whose they are."""
        shares = np.arange(1, len(distances) + 1) / len(distances)
        return cls(distances.astype(np.float64), shares, np.full(len(distances), _EVEN))

    def share(self, distances: np.ndarray) -> np.ndarray:
        """How many of all unrelated pairs lie no farther apart than this: the curve, below it an exponential tail."""
        seen = self._seen
        within = np.interp(distances, self.distances[seen:], np.log(self.shares[seen:]))
        beyond = np.maximum(self.distances[seen] - distances, 0) / self._scale
        shares: np.ndarray = np.exp(within - beyond)
        return shares

    def chance(self, distances: np.ndarray, tries: int) -> np.ndarray:
        """How likely the nearest of so many references lies no farther from a photo that is related to none."""
        # The share of each query is its own: the mean of 1 - (1 - share) ** tries over their gamma distribution.
        hits = -tries * np.log1p(-np.minimum(self.share(distances), 1 - 1e-12))
        shapes = np.interp(distances, self.distances, self.shapes)
        chances: np.ndarray = -np.expm1(-shapes * np.log1p(hits / shapes))
        return chances

    @property
    def pairs(self) -> int:
        """How many pairs these are the shares of."""
        return round(1 / float(self.shares[0]))

    @property
    def _seen(self) -> int:
        """The first place where the curve is believed."""
        return int(np.searchsorted(self.shares, min(_SEEN / self.pairs, self.shares[-1])))

    @cached_property
    def _scale(self) -> float:
        """Of the exponential tail, by maximum likelihood: how far the nearest pairs lie below their edge on average."""
        counts = np.diff(np.append(0, self.shares * self.pairs))
        near = self.distances[: int(np.searchsorted(self.shares, min(_FITTED / self.pairs, self.shares[-1]))) + 1]
        below = np.average(near[-1] - near, weights=counts[: len(near)])
        return float(max(below, 1e-6))


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

    def chances(self, distances: np.ndarray, by_descriptor: np.ndarray, tries: int) -> np.ndarray:
        """How likely each of (B, N) distances is by chance: those `by_descriptor`, and those of codes."""
        of_codes = self.code.chance(distances, tries)
        if self.descriptor is None:
            assert not by_descriptor.any(), "nothing is ranked again where nothing is known of it"
            return of_codes
        return np.where(by_descriptor, self.descriptor.chance(distances, tries), of_codes)

    @property
    def ascending(self) -> bool:
        """Whether the distances are in order, as they were measured."""
        both = [self.code, *([self.descriptor] if self.descriptor is not None else [])]
        return all((np.diff(each.distances) >= 0).all() and (np.diff(each.shares) >= 0).all() for each in both)

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
    told = np.flatnonzero((shares >= min(_FITTED / pairs, shares[-1])) & (shares <= max(_NEAR, shares[0])))
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
