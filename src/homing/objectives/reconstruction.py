"""The paper's objective for product quantizers, and ours for all codewords: come near to what the index stores."""

from __future__ import annotations

from torch import Tensor

from homing.codebooks import Codebook
from homing.objectives.base import Objective


class Reconstruction(Objective):
    """‖x − q(x_o)‖²: for PQ, SQ, RQ, LSQ, any rotation before them, and with cells, which q brings along.

    Codes for fast scans are, by default, not of residuals: there q knows nothing of the cell. Halfway between q and the
    center of the cell both squared distances are smallest together.
    """

    per_photo = ("_targets",)

    def __init__(self, codebook: Codebook, originals: Tensor) -> None:
        self._targets = codebook.reconstruct(originals)
        if codebook.has_cells and not codebook.quantizer.ivf.by_residual:
            self._targets = (self._targets + codebook.centroids(originals)) / 2

    def __call__(self, descriptors: Tensor) -> Tensor:
        """Squared distance of each descriptor to where its original's stored form draws it: (B,)."""
        return (descriptors - self._targets).square().sum(dim=1)
