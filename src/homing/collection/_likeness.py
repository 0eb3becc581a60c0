"""How much alike the photos of a collection are, by some of them."""

from __future__ import annotations

from threading import Lock

import numpy as np

from homing.codebooks import Codebook
from homing.indexes import Index
from homing.indexes.ranking import Descriptors

_SAMPLE = 1_000  # references that tell it
_GROWN = 1.1  # times as many references, or as few, and others are asked


class CollectionLikeness:
    """Measured when it is first asked for, and again when the collection has grown; safe to use in several threads."""

    def __init__(self, descriptors: Descriptors, codebook: Codebook, strangers: range) -> None:
        """Strangers are the ids in the index that the catalogue does not have."""
        self._descriptors, self._codebook, self._strangers = descriptors, codebook, strangers
        self._lock = Lock()
        self._likeness, self._among = 1.0, 0  # the references it was measured among

    def now(self, index: Index) -> float:
        """How many times as often references lie near each other as unrelated photos that the codebook knows do."""
        with self._lock:
            references = len(index) - len(self._strangers)
            if not self._among / _GROWN <= references <= self._among * _GROWN:
                self._likeness, self._among = self._codebook.unrelated.likeness(self._some(index)), references
            return self._likeness

    def _some(self, index: Index) -> np.ndarray:
        chosen = index.some(_SAMPLE, below=self._strangers.start)
        found = self._descriptors(chosen)
        return np.array([found[number][0] for number in chosen.tolist() if number in found], dtype=np.float32)
