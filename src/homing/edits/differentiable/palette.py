"""Differentiable palette: few colors for each photo, by k-means."""

from __future__ import annotations

import torch
from torch import Tensor

from homing.edits.differentiable.color import luma
from homing.edits.differentiable.views import Views, differentiable_edit

MAX_COLORS = 16
"""Colors; with more of them the eye hardly sees a difference, and neither does a network."""

SAMPLED_PIXELS = 1024
"""How many pixels of a photo the colors are chosen from."""

STEPS = 6


@differentiable_edit
def palette(views: Views, strength: Tensor) -> Views:
    """As many colors as that, up to sixteen, chosen for the photo; the gradient passes as if nothing had been done."""
    flat = views.pixels.detach().flatten(2)
    colors, unused = _choose_colors(flat, strength.round().clamp(2, MAX_COLORS))
    nearest = _similarity(flat, colors, unused).argmax(dim=1, keepdim=True)
    few = colors.mT.gather(2, nearest.expand(-1, 3, -1)).view_as(views.pixels)
    return Views(views.pixels + (few - views.pixels).detach(), views.ratio)


def _choose_colors(flat: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """(B, MAX_COLORS, 3) colors for the pixels (B, 3, N), and the mask (B, MAX_COLORS) of those beyond each photo's count."""
    # Steps of the golden section spread over the photo; a plain stride would see only some of its columns.
    total = flat.shape[-1]
    places = torch.arange(min(SAMPLED_PIXELS, total), device=flat.device) * round(0.618 * total) % total
    sample = flat[:, :, places]
    number = torch.arange(MAX_COLORS, device=flat.device)
    # From dark to bright, evenly: the start is the same every time, and no color starts far from all pixels.
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
    """(B, MAX_COLORS, N): higher where a pixel is closer to a color; the squared distance less what all colors share."""
    offset = 0.5 * colors.square().sum(-1) + torch.where(unused, torch.inf, 0.0)
    return colors @ flat - offset[..., None]
