"""How near unrelated photos come: distances of pairs of them and, beyond the nearest of those, a fitted tail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from homing.codebooks.pairs import NO_PAIRS, Tables
from homing.codebooks.quantiser import Quantiser
from homing.errors import CodebookError

By = Literal["code", "descriptor"]
MOST_PHOTOS = 14_000  # two hundred million pairs
FEWEST_REFERENCES = 100  # that tell how much alike photos are
_NEAR = 0.01  # the share of pairs, the nearest, that are all looked at; of the others a sample tells
_SAMPLED = 101  # one pair in so many
_POINTS = 400  # that a curve is kept as, beside the nearest pairs
_TAIL = 1e-5  # the share of pairs, the nearest, to which the tail is fitted, and for which it stands
_FEWEST = 500  # to which it is fitted
_BEYOND = 1e-3  # of the smallest share that was seen: what is rarer nobody can tell from these pairs
_TOLD = 50  # pairs that tell how unevenly they fall to queries, at least
_EVEN = 1e6  # a shape that makes no difference
_ALIKE = (1e-3, 1e-2)  # the shares of pairs, the nearest, by which photos are told to be alike: of many, and of few
_COUNTED = 100  # pairs that would be counted, at least, if photos were as those a codebook knows


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
    def measure(cls, asked: np.ndarray, kept: np.ndarray, related: np.ndarray = NO_PAIRS) -> PairDistances:
        """From the points (P, D) that stand for P photos as queries to those that stand for them as references.

        Pairs (R, 2) that are related are not counted.
        """
        tables = Tables(asked, kept, related)
        pairs = tables.pairs
        wanted = max(int(_NEAR * pairs), min(pairs, 2 * _FEWEST))  # a pair may lie both ways as near
        nearest, sample = np.empty(0, np.float32), []
        for apart in tables:
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
        return cls(distances, shares, _shapes(tables, distances, shares))

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

    def chance(self, distances: np.ndarray, tries: float | np.ndarray) -> np.ndarray:
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
    def measure(cls, quantiser: Quantiser, photos: np.ndarray, related: np.ndarray = NO_PAIRS) -> Unrelated:
        """From (P, D) descriptors of distinct photos, of which so many are taken as are enough.

        Pairs (R, 2) of them that are related are left out.
        """
        if len(photos) < 2:
            raise CodebookError("how far unrelated photos lie apart takes two at least; give it more photos")
        some = np.random.default_rng(0).permutation(len(photos))[:MOST_PHOTOS]
        rows = np.ascontiguousarray(photos[some], dtype=np.float32)
        places = np.full(len(photos), -1)
        places[some] = np.arange(len(some))
        related = places[related]
        related = related[(related >= 0).all(axis=1)]
        return cls(
            PairDistances.measure(*quantiser.compared(rows, rows), related),
            PairDistances.measure(rows, rows, related),
        )

    def likeness(self, photos: np.ndarray) -> float:
        """How many times as often photos, of (P, D) descriptors, lie near each other as those known here do.

        It is 1 at least, and where they are too few to tell.
        """
        pairs = len(photos) * (len(photos) - 1)
        if self.descriptor is None or len(photos) < FEWEST_REFERENCES:
            return 1.0
        # Nearer pairs are left to the tail: many of them would be photos of one series, which are not unrelated.
        share = float(np.clip(_COUNTED / pairs, *_ALIKE))
        nearest, farthest = np.interp([_TAIL, share], self.descriptor.shares, self.descriptor.distances)
        counted = sum(int(((apart > nearest) & (apart <= farthest)).sum()) for apart in Tables(photos, photos))
        return max(counted / (pairs * (share - _TAIL)), 1.0)

    def chance(self, by: By, distances: np.ndarray, tries: int, likeness: float | np.ndarray = 1.0) -> np.ndarray:
        """How likely the nearest of so many references lies no farther from a photo that is related to none.

        Photos that are so many times as often near each other have as many times the tries, by descriptors: codes come
        too seldom near each other to follow.
        """
        if by == "code":
            return self.code.chance(distances, tries)
        return self.by_descriptor.chance(distances, tries * likeness)

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


def _distinct(distances: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of equal distances the last share: no pair lies between them."""
    last = np.append(np.diff(distances) > 0, True)
    return distances[last], shares[last]


def _area(places: np.ndarray, heights: np.ndarray) -> float:
    return float((np.diff(places) * (heights[1:] + heights[:-1])).sum() / 2)


def _shapes(tables: Tables, distances: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The shapes (K,) of the gamma distributions that shares are spread over queries by, from their second moments."""
    photos, pairs = len(tables.asked), tables.pairs
    told = np.flatnonzero((shares >= min(_TOLD / pairs, shares[-1])) & (shares <= max(_NEAR, shares[0])))
    if photos < 3 or not len(told):
        return np.full(len(distances), _EVEN)
    told = told[:: max(len(told) // 40, 1)]
    together = np.zeros(len(told))
    for apart in tables:
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
