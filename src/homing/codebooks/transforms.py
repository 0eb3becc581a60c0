"""FAISS's transforms as differentiable PyTorch functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import faiss
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

Transform = Callable[[Tensor], Tensor]


def to_torch(transform: Any, device: torch.device) -> Transform:
    """A FAISS transform as a function of (B, d) rows of any precision."""
    if isinstance(transform, faiss.NormalizationTransform):
        return partial(F.normalize, dim=1)
    if isinstance(transform, faiss.ITQTransform):
        mean = torch.from_numpy(faiss.vector_to_array(transform.mean)).to(device)
        rotate = to_torch(transform.pca_then_itq, device)
        return lambda rows: rotate(F.normalize(rows - mean, dim=1))
    # All others are affine: the zero vector and the unit vectors give shift and matrix.
    shift = transform.apply(np.zeros((1, transform.d_in), np.float32))
    matrix = torch.from_numpy(transform.apply(np.eye(transform.d_in, dtype=np.float32)) - shift).to(device)
    added = torch.from_numpy(shift).to(device)
    return lambda rows: rows @ matrix.to(rows.dtype) + added


def compose(transforms: list[Transform]) -> Transform:
    """One transform after the other."""

    def composed(rows: Tensor) -> Tensor:
        for each in transforms:
            rows = each(rows)
        return rows

    return composed
