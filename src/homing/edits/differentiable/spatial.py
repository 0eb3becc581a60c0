"""Differentiable edits of geometry."""

from __future__ import annotations

import torch
from torch import Tensor

from homing._tensor_cache import cached_tensor
from homing.edits.differentiable._separable import apply_separable, downscale_matrices
from homing.edits.differentiable._warp import affine, homographies_between, scaling, warp
from homing.edits.differentiable.views import Views, differentiable_edit


@differentiable_edit
def rotation(views: Views, strength: Tensor) -> Views:
    """Rotate counterclockwise by this many degrees, on a black canvas that holds the whole photo."""
    cosine, sine = strength.deg2rad().cos(), strength.deg2rad().sin()
    # The photo is `ratio` wide and 1 high; the canvas holds all four corners.
    width = views.ratio * cosine.abs() + sine.abs()
    height = views.ratio * sine.abs() + cosine.abs()
    zero = torch.zeros_like(sine)
    back = affine(cosine * width / views.ratio, -sine * height / views.ratio, zero, sine * width, cosine * height, zero)
    return Views(warp(views.pixels, back), width / height)


@differentiable_edit
def crop(views: Views, strength: Tensor) -> Views:
    """Crop the center; this fraction of the area remains."""
    side = strength.sqrt()
    return Views(warp(views.pixels, scaling(side, side), outside="border"), views.ratio)


@differentiable_edit
def fragment(views: Views, strength: Tensor, generator: torch.Generator) -> Views:
    """Crop at a random position; this fraction of each side remains."""
    center = 2 * torch.rand((2, len(views)), generator=generator, device=strength.device, dtype=strength.dtype) - 1
    across, down = (1 - strength) * center
    zero = torch.zeros_like(strength)
    cut = affine(strength, zero, across, zero, strength, down)
    # With black outside, the outermost half pixel would fade after magnification.
    return Views(warp(views.pixels, cut, outside="border"), views.ratio)


@differentiable_edit
def resize(views: Views, strength: Tensor) -> Views:
    """Keep the detail that fits into this fraction of the area; a fraction above 1 changes nothing."""
    count = (views.side * strength.clamp_max(1).sqrt()).round().clamp_min(1)
    return Views(apply_separable(views.pixels, downscale_matrices(count, views.side)), views.ratio)


@differentiable_edit
def aspect(views: Views, strength: Tensor) -> Views:
    """Set the ratio of width to height; the pixels of the square stay the same."""
    return Views(views.pixels, strength)


@differentiable_edit
def flip(views: Views) -> Views:
    """Mirror left to right."""
    return Views(views.pixels.flip(-1), views.ratio)


@differentiable_edit
def pad(views: Views) -> Views:
    """Pad to a square with black bars."""
    back = scaling((1 / views.ratio).clamp_min(1), views.ratio.clamp_min(1))
    return Views(warp(views.pixels, back), torch.ones_like(views.ratio))


@differentiable_edit
def perspective(views: Views, strength: Tensor, generator: torch.Generator) -> Views:
    """Move the four corners by normally distributed offsets; sigma is in thousandths of a side."""
    corners = _corners(strength.device, strength.dtype).expand(len(views), -1, -1)
    normal = torch.randn(corners.shape, generator=generator, device=strength.device, dtype=strength.dtype)
    wander = (normal * strength[:, None, None] / 1000).clamp(-0.24, 0.24)
    # A side has length 2 in these coordinates.
    return Views(warp(views.pixels, homographies_between(corners + 2 * wander, corners)), views.ratio)


@cached_tensor
def _corners(device: torch.device, dtype: torch.dtype) -> Tensor:
    return torch.tensor([(-1, -1), (1, -1), (1, 1), (-1, 1)], device=device, dtype=dtype)
