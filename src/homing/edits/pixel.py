"""Edits of pixel values by filters, palettes and shuffles. Lengths are in pixels; of views, in those of the square."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageFilter
from torch import Tensor

from homing.edits._registry import edit
from homing.edits._views import Views, apply_separable
from homing.edits.color import luma

MAX_COLORS = 16
"""Maximum number of colors of a differentiable palette; more of them hardly change a photo."""

SAMPLED_PIXELS = 1024
"""Number of pixels of a photo that the colors are chosen from."""

PALETTE_STEPS = 6


@edit("pixel", bounds=(0.0, 50.0), neutral=0.0)
def blur(image: Image.Image, strength: float) -> Image.Image:
    """Blur with a Gaussian of this sigma in pixels; the kernel has (sigma - 0.35) / 0.15 taps, as in torchvision."""
    half = max(1, round((strength - 0.5) / 0.3))
    # Below 0.1 pixels all weight is on the center, and the division would overflow.
    weights = np.exp(-0.5 * (np.arange(-half, half + 1, dtype=np.float32) / max(strength, 0.1)) ** 2)
    weights /= weights.sum()
    # Separable: the two-dimensional kernel of torchvision takes 15 times longer for the same pixels.
    pixels = _smooth(_smooth(np.asarray(image, dtype=np.float32), weights, axis=0), weights, axis=1)
    return Image.fromarray(np.rint(pixels).astype(np.uint8))


def _smooth(pixels: np.ndarray, weights: np.ndarray, axis: int) -> np.ndarray:
    """Convolve (H, W, 3) along one axis; borders are mirrored."""
    margins = [(0, 0)] * 3
    margins[axis] = (len(weights) // 2,) * 2
    padded = np.moveaxis(np.pad(pixels, margins, mode="reflect"), axis, 0)
    smooth = np.zeros_like(pixels)
    total = np.moveaxis(smooth, axis, 0)
    for start, weight in enumerate(weights):
        total += weight * padded[start : start + len(total)]
    return smooth


@blur.differentiable
def _blur(views: Views, strength: Tensor) -> Views:
    return Views(apply_separable(views.pixels, gaussian_matrices(strength, views.side)), views.ratio)


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


@edit("pixel", bounds=(2, 256), whole=True)
def palette(image: Image.Image, strength: int) -> Image.Image:
    """Reduce to this number of colors, chosen for the photo."""
    return image.quantize(strength).convert("RGB")


@palette.differentiable
def _palette(views: Views, strength: Tensor) -> Views:
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
    for _ in range(PALETTE_STEPS):
        nearest = _similarity(sample, colors, unused).argmax(dim=1, keepdim=True)
        members = (nearest == number[:, None]).to(flat)
        size = members.sum(-1, keepdim=True)
        colors = torch.where(size > 0, members @ sample.mT / size.clamp_min(1), colors)
    return colors, unused


def _similarity(flat: Tensor, colors: Tensor, unused: Tensor) -> Tensor:
    """Similarity (B, MAX_COLORS, N) of colors and pixels: minus half the squared distance, plus a pixel constant."""
    offset = 0.5 * colors.square().sum(-1) + torch.where(unused, torch.inf, 0.0)
    return colors @ flat - offset[..., None]


@edit("pixel")
def edges(image: Image.Image) -> Image.Image:
    """Enhance edges."""
    return image.filter(ImageFilter.EDGE_ENHANCE_MORE)


@edges.differentiable
def _edges(views: Views) -> Views:
    """Subtract the sum of the 3 x 3 neighborhood from ten times the pixel; border pixels stay, as in Pillow."""
    inner = views.pixels[..., 1:-1, 1:-1]
    result = views.pixels.clone()
    result[..., 1:-1, 1:-1] = 10 * inner - 9 * F.avg_pool2d(views.pixels, kernel_size=3, stride=1)
    return Views(result, views.ratio)


@edit("pixel", bounds=(0.01, 1.0), neutral=1.0)
def pixelate(image: Image.Image, strength: float) -> Image.Image:
    """Replace blocks of pixels by their mean; each side has this fraction of the original number of pixels."""
    width, height = image.size
    blocks = (max(1, round(width * strength)), max(1, round(height * strength)))
    return image.resize(blocks, Image.Resampling.BOX).resize(image.size, Image.Resampling.NEAREST)


@pixelate.differentiable
def _pixelate(views: Views, strength: Tensor) -> Views:
    count = (views.side * strength).round().clamp_min(1)
    return Views(apply_separable(views.pixels, _block_matrices(count, views.side)), views.ratio)


def _block_matrices(count: Tensor, side: int) -> Tensor:
    """Matrices (B, S, S) that average over `count` (B,) blocks per side."""
    index = torch.arange(side, device=count.device)
    # In integers: rounding would move the borders between blocks.
    block = (2 * index + 1) * count.long()[:, None] // (2 * side)
    same = (block[:, :, None] == block[:, None, :]).to(count)
    return same / same.sum(-1, keepdim=True)


@edit("pixel", bounds=(0.0, 1.0), neutral=0.0)
def shuffle(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """Permute this fraction of the pixels at random."""
    pixels = np.array(image)
    flat = pixels.reshape(-1, 3)
    chosen = rng.choice(len(flat), size=round(strength * len(flat)), replace=False)
    flat[chosen] = flat[rng.permutation(chosen)]
    return Image.fromarray(pixels)


@shuffle.differentiable
def _shuffle(views: Views, strength: Tensor, generator: torch.Generator) -> Views:
    """Replace about this fraction of the pixels by others of the photo."""
    batch, count = len(views), views.side**2
    device = views.pixels.device
    moves = torch.rand((batch, count), generator=generator, device=device) < strength[:, None]
    elsewhere = torch.randint(count, (batch, count), generator=generator, device=device)
    origin = torch.where(moves, elsewhere, torch.arange(count, device=device))
    shuffled = views.pixels.flatten(2).gather(2, origin[:, None].expand(-1, 3, -1))
    return Views(shuffled.view_as(views.pixels), views.ratio)
