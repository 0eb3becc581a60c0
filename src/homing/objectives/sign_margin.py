"""The paper's objective for sign codes: go deeper into the side of each plane that the original lies on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import faiss
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from homing.codebooks import Codebook

Step = Callable[[Tensor], Tensor]


class SignMargin:
    """−1/L Σ sign(b_j(x_o)) · (w_jᵀx − t_j): for LSH behind any projection (PCA, ITQ, …), and for RaBitQ.

    The planes of LSH stand at its thresholds, those of RaBitQ at the mean of what it learnt from.
    """

    def __init__(self, codebook: Codebook, originals: Tensor) -> None:
        codec = codebook.quantiser.codec
        self._steps = [_differentiable(each, originals.device) for each in codebook.quantiser.transforms]
        self._bits: int | None = None
        self._planes = originals.new_zeros(())
        if hasattr(codec, "thresholds"):
            if codec.rotate_data:
                self._steps.append(_differentiable(codec.rrot, originals.device))
            self._bits = codec.nbits
            if codec.train_thresholds:
                self._planes = torch.from_numpy(faiss.vector_to_array(codec.thresholds)).to(originals)
        else:
            self._planes = torch.from_numpy(faiss.vector_to_array(codec.center)).to(originals)
        self._signs = torch.where(self._sides(originals) > 0, 1.0, -1.0)

    def __call__(self, descriptors: Tensor) -> Tensor:
        """How far each descriptor lies on the wrong side of the planes, in their mean: (B,), below 0 on the right."""
        return -(self._signs * self._sides(descriptors)).mean(dim=1)

    def _sides(self, descriptors: Tensor) -> Tensor:
        """What FAISS takes the signs of: (B, L)."""
        for step in self._steps:
            descriptors = step(descriptors)
        return descriptors[:, : self._bits] - self._planes


def _differentiable(transform: Any, device: torch.device) -> Step:
    """A transform of FAISS as PyTorch computes it."""
    if isinstance(transform, faiss.NormalizationTransform):
        return partial(F.normalize, dim=1)
    if isinstance(transform, faiss.ITQTransform):
        mean = torch.from_numpy(faiss.vector_to_array(transform.mean)).to(device)
        rotate = _differentiable(transform.pca_then_itq, device)
        return lambda rows: rotate(F.normalize(rows - mean, dim=1))
    # All others multiply by a matrix and add: what they make of nothing, and of each axis, tells both.
    shift = transform.apply(np.zeros((1, transform.d_in), np.float32))
    matrix = torch.from_numpy(transform.apply(np.eye(transform.d_in, dtype=np.float32)) - shift).to(device)
    added = torch.from_numpy(shift).to(device)
    return lambda rows: rows @ matrix.to(rows.dtype) + added
