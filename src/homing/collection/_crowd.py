"""How near a query lies to photos of this collection, whatever they show: its crowd among some of them."""

from __future__ import annotations

from threading import Lock

import numpy as np

from homing.codebooks.pairs import crowds_in, distances_between
from homing.codebooks.unrelated import FEWEST_REFERENCES
from homing.collection.catalogue import Catalogue
from homing.indexes import FaissIndex

_SAMPLE = 500  # references that every query is compared with
_GROWN = 1.1  # times as many references, or as few, and others are chosen


class CollectionCrowd:
    """Descriptors of some references, chosen at random; safe to use from several threads."""

    def __init__(self, catalogue: Catalogue, strangers: range) -> None:
        """Strangers are the ids in the index that the catalogue does not have."""
        self._catalogue, self._strangers = catalogue, strangers
        self._lock = Lock()
        self._rows = np.empty((0, 0), dtype=np.float32)
        self._among = 0  # references they were chosen from

    def crowds(self, queries: np.ndarray, index: FaissIndex) -> np.ndarray | None:
        """How far the crowds (B,) of (B, T, D) queries lie; None where references are too few to tell.

        Of a query that was described several times the nearest counts.
        """
        with self._lock:
            now = len(index) - len(self._strangers)
            if not self._among / _GROWN <= now <= self._among * _GROWN:
                self._rows, self._among = self._some(index), now
            rows = self._rows
        if len(rows) < FEWEST_REFERENCES:
            return None
        apart = distances_between(queries.reshape(-1, queries.shape[-1]), rows)
        nearest: np.ndarray = crowds_in(apart).reshape(queries.shape[:2]).min(axis=1)
        return nearest

    def _some(self, index: FaissIndex) -> np.ndarray:
        ids, _ = index.contents()
        own = np.sort(ids[ids < self._strangers.start])  # they come in no order
        chosen = np.random.default_rng(0).permutation(own)[:_SAMPLE]
        found = self._catalogue.descriptors(chosen)
        rows = [found[number][0] for number in chosen.tolist() if number in found]
        return np.array(rows, dtype=np.float32)
