"""The JPEG edits; differentiable with the steps and tables of libjpeg, and straight-through rounding."""

from __future__ import annotations

import math
from io import BytesIO

import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from homing._tensors import cached_tensor
from homing.edits._registry import edit
from homing.edits._views import Views
from homing.edits._wild import WILD
from homing.edits.color import luma

LUMINANCE_TABLE = (
    (16, 11, 10, 16, 24, 40, 51, 61),
    (12, 12, 14, 19, 26, 58, 60, 55),
    (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62),
    (18, 22, 37, 56, 68, 109, 103, 77),
    (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101),
    (72, 92, 95, 98, 112, 100, 103, 99),
)
"""Quantization steps of each frequency at quality 50, from annex K of the standard."""

CHROMINANCE_TABLE = (
    (17, 18, 24, 47, 99, 99, 99, 99),
    (18, 21, 26, 66, 99, 99, 99, 99),
    (24, 26, 56, 99, 99, 99, 99, 99),
    (47, 66, 99, 99, 99, 99, 99, 99),
    *((99,) * 8,) * 4,
)

QuantizationTable = tuple[tuple[int, ...], ...]


@edit("pixel", bounds=(1, 100), whole=True)
def jpeg(image: Image.Image, strength: int) -> Image.Image:
    """Encode as JPEG of this quality and decode again."""
    file = BytesIO()
    image.save(file, format="JPEG", quality=strength)
    return Image.open(file).convert("RGB")


@jpeg.differentiable
def _jpeg(views: Views, strength: Tensor) -> Views:
    """Encode as JPEG of this quality, with chroma at half the resolution, and decode again."""
    levels = 255 * views.pixels
    if short := -views.side % 16:  # pad to whole blocks, as libjpeg does
        levels = F.pad(levels, (0, short, 0, short), mode="replicate")
    y = luma(levels)
    cb = (levels[:, 2:] - y) / 1.772
    cr = (levels[:, :1] - y) / 1.402
    y = _quantize(y - 128, strength, LUMINANCE_TABLE) + 128
    chroma = _quantize(F.avg_pool2d(torch.cat((cb, cr), dim=1), 2), strength, CHROMINANCE_TABLE)
    cb, cr = F.interpolate(chroma, scale_factor=2, mode="bilinear", align_corners=False).chunk(2, dim=1)
    red, blue = y + 1.402 * cr, y + 1.772 * cb
    green = (y - 0.299 * red - 0.114 * blue) / 0.587
    coded = torch.cat((red, green, blue), dim=1)[..., : views.side, : views.side]
    return Views(coded / 255, views.ratio)


@edit("pixel")
def thumbnail(image: Image.Image) -> Image.Image:
    """Shrink to 160 pixels on the longer side, and encode as JPEG of quality 30."""
    small, side = image.copy(), WILD["thumbnail"]["long-side"]
    small.thumbnail((side, side), Image.Resampling.BICUBIC)
    return jpeg.function(small, WILD["thumbnail"]["quality"])


@thumbnail.differentiable
def _thumbnail(views: Views) -> Views:
    """Shrink both sides to 160 pixels, or to less if the views are smaller, and back."""
    side = min(views.side, WILD["thumbnail"]["long-side"])
    small = F.interpolate(views.pixels, (side, side), mode="bilinear", antialias=True, align_corners=False)
    quality = torch.full_like(views.ratio, WILD["thumbnail"]["quality"])
    coded = _jpeg(Views(small, views.ratio), quality).pixels
    return Views(F.interpolate(coded, views.pixels.shape[-2:], mode="bilinear", align_corners=False), views.ratio)


def _quantize(plane: Tensor, quality: Tensor, steps: QuantizationTable) -> Tensor:
    """Round the frequencies of each block of (B, C, S, S) to multiples of their steps."""
    transform = dct_matrix(plane.shape[-1], plane.device, plane.dtype)
    sizes = _scale(_table(steps, plane.device, plane.dtype), quality)
    repeats = plane.shape[-1] // 8
    sizes = sizes.repeat(1, repeats, repeats)[:, None]
    multiples = transform @ plane @ transform.mT / sizes
    rounded = multiples + (multiples.round() - multiples).detach()
    return transform.mT @ (rounded * sizes) @ transform


def _scale(table: Tensor, quality: Tensor) -> Tensor:
    """Tables (B, 8, 8) at each quality of (B,), scaled as in libjpeg."""
    quality = quality.round().clamp(1, 100)
    percent = torch.where(quality < 50, (5000 / quality).floor(), 200 - 2 * quality)
    return ((table * percent[:, None, None] + 50) / 100).floor().clamp(1, 255)


@cached_tensor
def _table(steps: QuantizationTable, device: torch.device, dtype: torch.dtype) -> Tensor:
    return torch.tensor(steps, device=device, dtype=dtype)


@cached_tensor
def dct_matrix(side: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Block-diagonal (S, S) matrix of the 8-point cosine transform; faster than cutting out the blocks."""
    index = torch.arange(8, dtype=torch.float64)
    block = 0.5 * torch.cos((2 * index + 1) * index[:, None] * math.pi / 16)
    block[0] /= math.sqrt(2)
    return torch.kron(torch.eye(side // 8, dtype=torch.float64), block).to(device, dtype)
