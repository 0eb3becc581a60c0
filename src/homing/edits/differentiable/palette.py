"""Differentiable palette: few colors per photo, chosen by k-means."""

from __future__ import annotations

import torch
from torch import Tensor

from homing.edits.differentiable.color import luma
from homing.edits.differentiable.views import Views, differentiable_edit

MAX_COLORS = 16
"""Maximum number of colors of a palette; more of them hardly change a photo."""

SAMPLED_PIXELS = 1024
"""Number of pixels of a photo that the colors are chosen from."""

STEPS = 6


@differentiable_edit
def palette(views: Views, strength: Tensor) -> Views:
    """Reduce to this number of colors, at most 16, chosen for the photo; the gradient is that of the identity."""
    flat = views.pixels.detach().flatten(2)
    colors, unused = _choose_colors(flat, strength.round().clamp(2, MAX_COLORS))
    nearest = _similarity(flat, colors, unused).argmax(dim=1, keepdim=True)
    few = colors.mT.gather(2, nearest.expand(-1, 3, -1)).view_as(views.pixels)
    return Views(views.pixels + (few - views.pixels).detach(), views.ratio)


def _choose_colors(flat: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Colors (B, MAX_COLORS, 3) of the pixels (B, 3, N), and the mask (B, MAX_COLORS) of unused ones."""
    # Golden-section steps cover the photo; a plain stride would sample only some columns.
    total = flat.shape[-1]
    indices = torch.arange(min(SAMPLED_PIXELS, total), device=flat.device) * round(0.618 * total) % total
    sample = flat[:, :, indices]
    number = torch.arange(MAX_COLORS, device=flat.device)
    # Start from evenly spaced luma quantiles: deterministic, and no color starts far from all pixels.
    order = luma(sample[..., None]).flatten(1).argsort(dim=1)
    rank = ((number + 0.5) / count[:, None] * sample.shape[-1]).long().clamp_max(sample.shape[-1] - 1)
    start = order.gather(1, rank)
    colors = sample.gather(2, start[:, None].expand(-1, 3, -1)).mT
    unused = number >= count[:, None]
    for _ in range(STEPS):
        nearest = _similarity(sample, colors, unused).argmax(dim=1, keepdim=True)
        members = (nearest == number[:, None]).to(flat)
        size = members.sum(-1, keepdim=True)
        colors = torch.where(size > 0, members @ sample.mT / size.clamp_min(1), colors)
    return colors, unused


def _similarity(flat: Tensor, colors: Tensor, unused: Tensor) -> Tensor:
    """Similarity (B, MAX_COLORS, N) of colors and pixels: minus half the squared distance, plus a pixel constant."""
    offset = 0.5 * colors.square().sum(-1) + torch.where(unused, torch.inf, 0.0)
    return colors @ flat - offset[..., None]
