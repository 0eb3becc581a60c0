"""Differentiable edits of color."""

from __future__ import annotations

import torch
from torch import Tensor

from homing.edits.differentiable.views import Views, differentiable_edit


def luma(pixels: Tensor) -> Tensor:
    """Luma (B, 1, S, S), with the weights of JPEG and Pillow."""
    red, green, blue = pixels.chunk(3, dim=1)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def _away_from(gray: Tensor, views: Views, strength: Tensor) -> Views:
    return Views(gray + strength[:, None, None, None] * (views.pixels - gray), views.ratio)


@differentiable_edit
def contrast(views: Views, strength: Tensor) -> Views:
    """Multiply the distance of every value from the mean gray by the strength."""
    return _away_from(luma(views.pixels).mean(dim=(2, 3), keepdim=True), views, strength)


@differentiable_edit
def brightness(views: Views, strength: Tensor) -> Views:
    """Multiply every value by the strength."""
    return Views(views.pixels * strength[:, None, None, None], views.ratio)


@differentiable_edit
def saturation(views: Views, strength: Tensor) -> Views:
    """Multiply the distance of every value from the pixel's own gray by the strength."""
    return _away_from(luma(views.pixels), views, strength)


@differentiable_edit
def hue(views: Views, strength: Tensor) -> Views:
    """Rotate the hue by this fraction of the color circle."""
    value = views.pixels.amax(dim=1, keepdim=True)
    chroma = value - views.pixels.amin(dim=1, keepdim=True)
    rotated = _sextant(views.pixels, value, chroma) + 6 * strength[:, None, None, None]
    # Around the hue circle, a channel falls below the value by a ramp, a plateau and a ramp.
    phases = [(rotated + start) % 6 for start in (5, 3, 1)]
    falls = [torch.minimum(phase, 4 - phase).clamp(0, 1) for phase in phases]
    return Views(value - chroma * torch.cat(falls, dim=1), views.ratio)


def _sextant(pixels: Tensor, value: Tensor, chroma: Tensor) -> Tensor:
    """Hue (B, 1, S, S) in sixths of the circle; arbitrary for gray."""
    red, green, blue = pixels.chunk(3, dim=1)
    span = torch.where(chroma > 0, chroma, 1)
    near_red, near_green, near_blue = (green - blue) / span, (blue - red) / span + 2, (red - green) / span + 4
    return torch.where(value == red, near_red, torch.where(value == green, near_green, near_blue))


@differentiable_edit
def grayscale(views: Views) -> Views:
    """Replace every pixel by its luma."""
    return Views(luma(views.pixels).expand_as(views.pixels), views.ratio)
