"""The interface of indexes: all engines give the same results for the same codebook."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from torch import Tensor

# By default a search compares at most this many codes: about half a millisecond among a million references.
DEFAULT_CODES_SCANNED = 20_000
# Lance takes a millisecond per fifty cells, and searches among few references probe thousands of cells. Up to this
# many codes, some 2 MB, are read when a dataset is opened, and searched in memory.
MAX_CODES_IN_MEMORY = 200_000


class Index(Protocol):
    """A searchable set of references, stored as codes of one codebook."""

    def __len__(self) -> int: ...

    def search(
        self, descriptors: Tensor, k: int, probes: int | None = None, probe_radius: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest references of each of (B, D) or (B, T, D) descriptors: distances (B, k) and ids (B, k)."""

    def default_nprobe(self) -> int:
        """The number of probes that stays fast for the size of the index."""

    def sample_ids(self, count: int, *, below: int) -> np.ndarray:
        """Up to `count` ids below `below`, sampled with a fixed seed."""


def default_nprobe(cells: int, references: int) -> int:
    """The number of probes that stays fast for this many cells and references."""
    return min(cells, max(1, DEFAULT_CODES_SCANNED * cells // max(references, 1)))
