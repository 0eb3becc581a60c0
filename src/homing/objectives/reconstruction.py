"""The paper's objective for product, residual and scalar quantizers: distance to the stored approximation."""

from __future__ import annotations

from torch import Tensor

from homing.codebooks import Codebook
from homing.objectives.base import Objective


class Reconstruction(Objective):
    """‖x − q(x_o)‖²: for PQ, SQ, RQ and LSQ, with or without cells, after any rotation.

    Codes for fast scans are by default not of residuals, so q does not depend on the cell. The target is then the
    midpoint of q and the centroid, which minimizes the sum of both squared distances.
    """

    per_photo = ("_targets",)

    def __init__(self, codebook: Codebook, originals: Tensor) -> None:
        self._targets = codebook.reconstruct(originals)
        if codebook.has_cells and not codebook.quantizer.ivf.by_residual:
            self._targets = (self._targets + codebook.centroids(originals)) / 2

    def __call__(self, descriptors: Tensor) -> Tensor:
        """Squared distance of each descriptor to its target: (B,)."""
        return (descriptors - self._targets).square().sum(dim=1)
