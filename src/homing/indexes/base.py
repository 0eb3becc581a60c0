"""What every engine answers: the same codebook gives the same answers, whatever keeps its codes."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from torch import Tensor

# Looking at this many codes of a million, and into the cells they lie in, takes about half a millisecond; by default
# a search looks at no more.
DEFAULT_CODES_SCANNED = 20_000
# Lance takes a millisecond for some fifty cells, and a search among few references looks into thousands. The codes of
# up to so many are read when it is opened, some 2 MB, and searched in memory.
MAX_CODES_IN_MEMORY = 200_000


class Index(Protocol):
    """References as codes of one codebook, which are searched."""

    def __len__(self) -> int: ...

    def search(
        self, descriptors: Tensor, k: int, probes: int | None = None, probe_radius: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest references of each of (B, D) or (B, T, D) descriptors: distances (B, k) and ids (B, k)."""

    def default_nprobe(self) -> int:
        """As many probes as stay fast for an index of this size."""

    def sample_ids(self, count: int, *, below: int) -> np.ndarray:
        """So many of the ids below a number, or all if there are fewer: chosen at random, always the same ones."""


def default_nprobe(cells: int, references: int) -> int:
    """As many probes of so many cells as stay fast among so many references."""
    return min(cells, max(1, DEFAULT_CODES_SCANNED * cells // max(references, 1)))
