"""The twin of the palette: few colours for each photo, by k-means."""

from __future__ import annotations

import torch
from torch import Tensor

from homing.edits.differentiable.colour import luma
from homing.edits.differentiable.views import Views, twin

MOST = 16
"""Colours; with more of them the eye hardly sees a difference, and neither does a network."""

SAMPLE = 1024
"""How many pixels of a photo the colours are chosen from."""

STEPS = 6


@twin
def palette(views: Views, strength: Tensor) -> Views:
    """As many colours as that, up to sixteen, chosen for the photo; the gradient passes as if nothing had been done."""
    flat = views.pixels.detach().flatten(2)
    colours, unused = _choose_colours(flat, strength.round().clamp(2, MOST))
    nearest = _closeness(flat, colours, unused).argmax(dim=1, keepdim=True)
    few = colours.mT.gather(2, nearest.expand(-1, 3, -1)).view_as(views.pixels)
    return Views(views.pixels + (few - views.pixels).detach(), views.ratio)


def _choose_colours(flat: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """(B, MOST, 3) colours for the pixels (B, 3, N), and the mask (B, MOST) of those beyond each photo's count."""
    # Steps of the golden section spread over the photo; a plain stride would see only some of its columns.
    total = flat.shape[-1]
    places = torch.arange(min(SAMPLE, total), device=flat.device) * round(0.618 * total) % total
    sample = flat[:, :, places]
    number = torch.arange(MOST, device=flat.device)
    # From dark to bright, evenly: the start is the same every time, and no colour starts far from all pixels.
    order = luma(sample[..., None]).flatten(1).argsort(dim=1)
    rank = ((number + 0.5) / count[:, None] * sample.shape[-1]).long().clamp_max(sample.shape[-1] - 1)
    start = order.gather(1, rank)
    colours = sample.gather(2, start[:, None].expand(-1, 3, -1)).mT
    unused = number >= count[:, None]
    for _ in range(STEPS):
        nearest = _closeness(sample, colours, unused).argmax(dim=1, keepdim=True)
        members = (nearest == number[:, None]).to(flat)
        size = members.sum(-1, keepdim=True)
        colours = torch.where(size > 0, members @ sample.mT / size.clamp_min(1), colours)
    return colours, unused


def _closeness(flat: Tensor, colours: Tensor, unused: Tensor) -> Tensor:
    """(B, MOST, N): higher where a pixel is closer to a colour; the squared distance less what all colours share."""
    offset = 0.5 * colours.square().sum(-1) + torch.where(unused, torch.inf, 0.0)
    return colours @ flat - offset[..., None]
