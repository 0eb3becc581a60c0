"""Ours, for codebooks with cells: be much nearer to one's own cell than to any other, and in it to one's own code."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from homing.codebooks import Codebook
from homing.objectives.base import Objective

TEMPERATURE = 0.05  # in squared distance: at 0.2 photos leave their own code, and are no longer found as they are
SAMPLED_CODES = 64  # codes: about as many photos as a cell holds of a few hundred thousand
SAMPLED_CODES_WEIGHT = (
    0.2  # weight of the drawn codes: at 1 more copies are lost to other cells than are won in their own
)
CODE_WEIGHT = 0.5  # weight of the photo's own code


class CellMargin(Objective):
    """T · cross-entropy of −‖x − c_j‖²/T over all cells j, plus 0.2 times that of −‖x − q_k‖²/T over codes q_k.

    The codes are the photo's own, q(x_o), and some of its cell, drawn at random, as strangers may have them; of the
    photo itself comes ½ ‖x − q(x_o)‖². The paper's objectives draw a photo to one point; this one draws it away from
    the cells next to its own and from others in it, which is where its copies would be lost. Where cells keep
    descriptors whole, q(x_o) is x_o itself; there, and where codes say nothing of the cell, none are drawn.
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
        """Without the pull to the code: copies may lie anywhere in their cell, if no stranger is nearer."""
        # ‖x‖² is the same for all cells and codes, and leaves their shares as they are.
        cell_codes = self._cell_codes.to(descriptors)
        cell_scores = 2 * descriptors @ self._centers.T.to(descriptors) - self._lengths
        code_scores = 2 * torch.einsum("bd,bkd->bk", descriptors, cell_codes) - cell_codes.square().sum(dim=2)
        first = torch.zeros_like(self._cells)
        return _margin(cell_scores, self._cells) + SAMPLED_CODES_WEIGHT * _margin(code_scores, first)


def _margin(scores: Tensor, own: Tensor) -> Tensor:
    """T times the cross-entropy of (B, N), of which one's own is at (B,): (B,); 0 where it is alone."""
    return TEMPERATURE * F.cross_entropy(scores / TEMPERATURE, own, reduction="none")
