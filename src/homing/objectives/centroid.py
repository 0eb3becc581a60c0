"""The paper's objective for inverted files whose cells store (nearly) exact descriptors: distance to the centroid."""

from __future__ import annotations

from torch import Tensor

from homing.codebooks import Codebook
from homing.objectives.base import Objective


class Centroid(Objective):
    """‖x − c(x_o)‖²: for IVF,Flat, IVF,SQ and IVF,RaBitQ, where copies are lost to other cells.

    For IVF,RaBitQ the sign margin leads away from the centroid: with IVF256,RaBitQ it lowers recall.
    """

    per_photo = ("_targets",)

    def __init__(self, codebook: Codebook, originals: Tensor) -> None:
        self._targets = codebook.centroids(originals)

    def __call__(self, descriptors: Tensor) -> Tensor:
        """Squared distance of each descriptor to the center of its original's cell: (B,)."""
        return (descriptors - self._targets).square().sum(dim=1)
