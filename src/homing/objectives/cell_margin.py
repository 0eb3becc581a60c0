"""Margin objective for codebooks with cells: a margin to other cells and to other codes of the same cell."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from homing.codebooks import Codebook
from homing.objectives.base import Objective

TEMPERATURE = 0.05  # in squared distance; at 0.2 photos move away from their own code, and unedited copies are lost
SAMPLED_CODES = 64  # about the number of photos per cell in a collection of a few hundred thousand
SAMPLED_CODES_WEIGHT = 0.2  # at 1, more copies are lost to other cells than are gained within their cell
CODE_WEIGHT = 0.5  # weight of the photo's own code


class CellMargin(Objective):
    """T · cross-entropy of −‖x − c_j‖²/T over all cells j, plus 0.2 times that of −‖x − q_k‖²/T over codes q_k.

    The codes q_k are the photo's own code q(x_o) and random codes of its cell, which stand for distractors. The loss of
    the photo itself (not of its copies) adds ½ ‖x − q(x_o)‖². The paper's objectives minimize the distance to one
    point; this one maximizes the margin to neighboring cells and to other codes of the cell, which copies are otherwise
    assigned to. In cells that store full descriptors, q(x_o) is x_o. There, and where codes are not of residuals, no
    codes are sampled.
    """

    per_photo = ("_cells", "_codes", "_cell_codes")

    def __init__(self, codebook: Codebook, originals: Tensor) -> None:
        self._centers = codebook.all_centroids.to(originals)
        self._lengths = self._centers.square().sum(dim=1)
        self._cells = codebook.cells(originals).to(originals.device)
        self._codes = originals if codebook.family == "cells" else codebook.reconstruct(originals)
        self._cell_codes = torch.cat(
            [self._codes[:, None], codebook.sample_reconstructions(self._cells, SAMPLED_CODES).to(originals)], dim=1
        )

    def __call__(self, descriptors: Tensor) -> Tensor:
        """The loss of each of (B, D) descriptors: (B,)."""
        return self.copy_loss(descriptors) + CODE_WEIGHT * (descriptors - self._codes).square().sum(dim=1)

    def copy_loss(self, descriptors: Tensor) -> Tensor:
        """The loss without the term of the own code: copies may be anywhere in the cell."""
        # ‖x‖² is common to all scores and cancels in the softmax.
        cell_codes = self._cell_codes.to(descriptors)
        cell_scores = 2 * descriptors @ self._centers.T.to(descriptors) - self._lengths
        code_scores = 2 * torch.einsum("bd,bkd->bk", descriptors, cell_codes) - cell_codes.square().sum(dim=2)
        first = torch.zeros_like(self._cells)
        return _margin(cell_scores, self._cells) + SAMPLED_CODES_WEIGHT * _margin(code_scores, first)


def _margin(scores: Tensor, own: Tensor) -> Tensor:
    """T times the cross-entropy of (B, N) scores with targets (B,): (B,); 0 for N = 1."""
    return TEMPERATURE * F.cross_entropy(scores / TEMPERATURE, own, reduction="none")
