"""Ours, for codebooks with cells: be much nearer to one's own cell than to any other, and near to one's code."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from homing.codebooks import Codebook
from homing.objectives.base import Objective

TEMPERATURE = 0.05  # in squared distance: at 0.2 photos leave their own code, and are no longer found as they are
CODE = 0.5  # weight of the code: without it, likewise


class CellMargin(Objective):
    """T · cross-entropy of −‖x − c_j‖²/T over all cells j, plus ½ ‖x − q(x_o)‖².

    The paper's objectives draw a photo to one point; this one draws it away from the cells next to its own, which is
    where its copies would be lost. Where cells keep descriptors whole, q(x_o) is x_o itself.
    """

    of_each = ("_cells", "_codes")

    def __init__(self, codebook: Codebook, originals: Tensor) -> None:
        self._centres = codebook.every_centroid.to(originals)
        self._lengths = self._centres.square().sum(dim=1)
        self._cells = codebook.cells(originals).to(originals.device)
        self._codes = originals if codebook.family == "cells" else codebook.reconstruct(originals)

    def __call__(self, descriptors: Tensor) -> Tensor:
        """The loss of each of (B, D) descriptors: (B,)."""
        return self.of_copies(descriptors) + CODE * (descriptors - self._codes).square().sum(dim=1)

    def of_copies(self, descriptors: Tensor) -> Tensor:
        """Of the cells alone: copies are lost outside their cell, and next to none inside."""
        # ‖x‖² is the same for all cells, and leaves their shares as they are.
        nearness = 2 * descriptors @ self._centres.T.to(descriptors) - self._lengths
        return TEMPERATURE * F.cross_entropy(nearness / TEMPERATURE, self._cells, reduction="none")
