"""Margin objective for product quantizers without cells: a margin to other codewords."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from homing.codebooks import Codebook
from homing.objectives.base import Objective

TEMPERATURE = 0.05  # in squared distance, divided by the number of sub-spaces; at 0.4 it equals the paper's objective
CODE_WEIGHT = 0.5  # weight of the code


class CodewordMargin(Objective):
    """Σ T · cross-entropy of −‖x_m − c_mj‖²/T over the codewords j of each of M sub-spaces m, plus ½ ‖x − q(x_o)‖².

    Every combination of codewords is a code, and squared distances add over sub-spaces. The sum is therefore T times
    the cross-entropy over all possible codes. T is 0.05/M.
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
        # ‖x_m‖² is common to all scores and cancels in the softmax.
        scores = 2 * torch.einsum("bmd,mjd->bjm", parts, codewords) - codewords.square().sum(dim=2).T
        losses = F.cross_entropy(scores / self._temperature, self._own, reduction="none")
        return self._temperature * losses.sum(dim=1) + CODE_WEIGHT * (descriptors - self._codes).square().sum(dim=1)
