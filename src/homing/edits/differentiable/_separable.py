"""Separable filters: one (S, S) matrix per photo, applied to rows and columns."""

from __future__ import annotations

import torch
from torch import Tensor


def apply_separable(pixels: Tensor, matrices: Tensor) -> Tensor:
    """Multiply the columns, then the rows, of (B, 3, S, S) by each photo's matrix of (B, S, S)."""
    for _ in range(2):
        # Stacked channels avoid a copy of the matrix per channel.
        pixels = (pixels.flatten(1, 2) @ matrices.mT).view(pixels.shape).mT
    return pixels


def gaussian_matrices(sigma: Tensor, side: int) -> Tensor:
    """Matrices (B, S, S) that blur by each sigma (B,), with the taps of the exact edit and mirrored borders.

    A kernel wider than the photo is truncated.
    """
    index = torch.arange(side, device=sigma.device)
    distance = torch.arange(2 * side, device=sigma.device, dtype=sigma.dtype)
    half = ((sigma - 0.5) / 0.3).round().clamp_min(1)[:, None]
    weights = torch.exp(-0.5 * (distance / sigma.clamp_min(0.1)[:, None]) ** 2) * (distance <= half)
    row, column = index[:, None], index[None, :]
    last = side - 1
    direct = weights[:, (row - column).abs()]
    # The outermost pixels are the axes of reflection and are not reflected themselves.
    mirrored = weights[:, row + column] * (column > 0) + weights[:, 2 * last - row - column] * (column < last)
    matrices = direct + mirrored
    return matrices / matrices.sum(-1, keepdim=True)


def block_matrices(count: Tensor, side: int) -> Tensor:
    """Matrices (B, S, S) that average over `count` (B,) blocks per side."""
    index = torch.arange(side, device=count.device)
    # In integers: rounding would move the borders between blocks.
    block = (2 * index + 1) * count.long()[:, None] // (2 * side)
    same = (block[:, :, None] == block[:, None, :]).to(count)
    return same / same.sum(-1, keepdim=True)


def downscale_matrices(count: Tensor, side: int) -> Tensor:
    """Matrices (B, S, S) that resize to `count` (B,) pixels per side, at most S, and back; bilinear."""
    index = torch.arange(side, device=count.device, dtype=count.dtype)
    few = count[:, None, None]
    scale = side / few
    center = (index[:, None] + 0.5) * scale
    down = (1 - (index + 0.5 - center).abs() / scale).clamp_min(0)
    # Rows beyond `count` are empty.
    down = down / down.sum(-1, keepdim=True).clamp_min(1e-6)
    position = ((index[:, None] + 0.5) / scale - 0.5).clamp_min(0).minimum(few - 1)
    up = (1 - (index - position).abs()).clamp_min(0)
    return up @ down
