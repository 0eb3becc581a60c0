"""The paper's objective for product quantisers, and ours for all codewords: come near to what the index stores."""

from __future__ import annotations

from torch import Tensor

from homing.codebooks import Codebook


class Reconstruction:
    """‖x − q(x_o)‖²: for PQ, SQ, RQ, LSQ, any rotation before them, and with cells (q brings them along)."""

    def __init__(self, codebook: Codebook, originals: Tensor) -> None:
        self._targets = codebook.reconstruct(originals)

    def __call__(self, descriptors: Tensor) -> Tensor:
        """Squared distance of each descriptor to the stored form of its original: (B,)."""
        return (descriptors - self._targets).square().sum(dim=1)
