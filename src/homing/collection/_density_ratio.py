"""The density ratio of a collection, estimated from a sample of its references."""

from __future__ import annotations

from threading import Lock

import numpy as np

from homing.codebooks import Codebook
from homing.indexes import Index
from homing.indexes.ranking import Descriptors

_SAMPLE = 1_000  # references in the sample
_REMEASURE_FACTOR = 1.1  # a collection that grows or shrinks by this factor is measured again


class CollectionDensityRatio:
    """The density ratio, measured on first use and again when the collection changes in size. Thread-safe."""

    def __init__(self, descriptors: Descriptors, codebook: Codebook, distractor_ids: range) -> None:
        """`distractor_ids` are the ids in the index that are not in the catalog."""
        self._descriptors, self._codebook, self._distractor_ids = descriptors, codebook, distractor_ids
        self._lock = Lock()
        self._density_ratio, self._measured_among = 1.0, 0  # number of references at the last measurement

    def value(self, index: Index) -> float:
        """How many times more often references are near each other than the codebook's unrelated photos."""
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
