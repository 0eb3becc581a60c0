"""Differentiable edits of pixel values. Lengths are in pixels of the network's square input."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from homing.edits.differentiable._separable import apply_separable, block_matrices, gaussian_matrices
from homing.edits.differentiable.views import Views, differentiable_edit


@differentiable_edit
def blur(views: Views, strength: Tensor) -> Views:
    """Blur with a Gaussian of this sigma."""
    return Views(apply_separable(views.pixels, gaussian_matrices(strength, views.side)), views.ratio)


@differentiable_edit
def edges(views: Views) -> Views:
    """Subtract the sum of the 3 x 3 neighborhood from ten times the pixel; border pixels stay, as in Pillow."""
    inner = views.pixels[..., 1:-1, 1:-1]
    result = views.pixels.clone()
    result[..., 1:-1, 1:-1] = 10 * inner - 9 * F.avg_pool2d(views.pixels, kernel_size=3, stride=1)
    return Views(result, views.ratio)


@differentiable_edit
def pixelate(views: Views, strength: Tensor) -> Views:
    """Replace blocks of pixels by their mean; each side has this fraction of the original number of pixels."""
    count = (views.side * strength).round().clamp_min(1)
    return Views(apply_separable(views.pixels, block_matrices(count, views.side)), views.ratio)


@differentiable_edit
def shuffle(views: Views, strength: Tensor, generator: torch.Generator) -> Views:
    """Replace about this fraction of the pixels by others of the photo."""
    batch, count = len(views), views.side**2
    device = views.pixels.device
    moves = torch.rand((batch, count), generator=generator, device=device) < strength[:, None]
    elsewhere = torch.randint(count, (batch, count), generator=generator, device=device)
    origin = torch.where(moves, elsewhere, torch.arange(count, device=device))
    shuffled = views.pixels.flatten(2).gather(2, origin[:, None].expand(-1, 3, -1))
    return Views(shuffled.view_as(views.pixels), views.ratio)
