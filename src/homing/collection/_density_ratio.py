"""How much alike the photos of a collection are, by some of them."""

from __future__ import annotations

from threading import Lock

import numpy as np

from homing.codebooks import Codebook
from homing.indexes import Index
from homing.indexes.ranking import Descriptors

_SAMPLE = 1_000  # references that tell it
_REMEASURE_FACTOR = 1.1  # times as many references, or as few, and others are asked


class CollectionDensityRatio:
    """Measured when it is first asked for, and again when the collection has grown; safe to use in several threads."""

    def __init__(self, descriptors: Descriptors, codebook: Codebook, distractor_ids: range) -> None:
        """Distractors are the ids in the index that the catalog does not have."""
        self._descriptors, self._codebook, self._distractor_ids = descriptors, codebook, distractor_ids
        self._lock = Lock()
        self._density_ratio, self._measured_among = 1.0, 0  # the references it was measured among

    def value(self, index: Index) -> float:
        """How many times as often references lie near each other as unrelated photos that the codebook knows do."""
        with self._lock:
            references = len(index) - len(self._distractor_ids)
            if not self._measured_among / _REMEASURE_FACTOR <= references <= self._measured_among * _REMEASURE_FACTOR:
                self._density_ratio, self._measured_among = (
                    self._codebook.null_distribution.density_ratio(self._sample_descriptors(index)),
                    references,
                )
            return self._density_ratio

    def _sample_descriptors(self, index: Index) -> np.ndarray:
        chosen = index.sample_ids(_SAMPLE, below=self._distractor_ids.start)
        found = self._descriptors(chosen)
        return np.array([found[number][0] for number in chosen.tolist() if number in found], dtype=np.float32)
