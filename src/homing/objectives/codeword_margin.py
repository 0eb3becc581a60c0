"""Ours, for product quantizers without cells: be much nearer to one's own codewords than to any others."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from homing.codebooks import Codebook
from homing.objectives.base import Objective

TEMPERATURE = 0.05  # in squared distance, shared out among the sub-spaces: at 0.4 it helps no more than the paper's
CODE_WEIGHT = 0.5  # weight of the code


class CodewordMargin(Objective):
    """Σ T · cross-entropy of −‖x_m − c_mj‖²/T over the codewords j of each of M sub-spaces m, plus ½ ‖x − q(x_o)‖².

    Any choice of codewords is a code, and their squared distances add up: the sum is T times the cross-entropy over all
    codes there can be, as the margin of cells is over all cells. T is 0.05/M.
    """

    per_photo = ("_own", "_codes")

    def __init__(self, codebook: Codebook, originals: Tensor) -> None:
        self._transform = codebook.torch_transform(originals.device)
        self._codewords = codebook.codewords.to(originals)
        self._own = codebook.pq_codes(originals).to(originals.device)
        self._codes = codebook.reconstruct(originals)
        self._temperature = TEMPERATURE / len(self._codewords)

    def __call__(self, descriptors: Tensor) -> Tensor:
        """The loss of each of (B, D) descriptors: (B,)."""
        codewords = self._codewords.to(descriptors)
        parts = self._transform(descriptors).reshape(len(descriptors), len(codewords), -1)
        # ‖x_m‖² is the same for all codewords, and leaves their shares as they are.
        scores = 2 * torch.einsum("bmd,mjd->bjm", parts, codewords) - codewords.square().sum(dim=2).T
        losses = F.cross_entropy(scores / self._temperature, self._own, reduction="none")
        return self._temperature * losses.sum(dim=1) + CODE_WEIGHT * (descriptors - self._codes).square().sum(dim=1)
