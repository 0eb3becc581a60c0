"""Edits of geometry: crops, rotations, resizing and other transforms."""

from __future__ import annotations

import math

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from homing._tensors import cached_tensor
from homing.edits._registry import edit
from homing.edits._views import Views, affine, apply_separable, homographies_between, scaling, warp
from homing.edits._wild import sample_parameter, sample_parameters, sample_ratio, sample_ratios, uniform


def _cut(image: Image.Image, side: float, across: float, down: float) -> Image.Image:
    """Crop to this fraction of each side; position (0, 0) is the top left corner, (1, 1) the bottom right one."""
    width, height = _scaled(image, side, side)
    left = round((image.width - width) * across)
    top = round((image.height - height) * down)
    return image.crop((left, top, left + width, top + height))


def _scaled(image: Image.Image, across: float, down: float) -> tuple[int, int]:
    return max(1, round(image.width * across)), max(1, round(image.height * down))


@edit("spatial", bounds=(-180, 180), neutral=0, whole=True)
def rotation(image: Image.Image, strength: int) -> Image.Image:
    """Rotate counterclockwise by this many degrees, on a black canvas that holds the whole photo."""
    return image.rotate(strength, Image.Resampling.BILINEAR, expand=True)


@rotation.differentiable
def _rotation(views: Views, strength: Tensor) -> Views:
    cosine, sine = strength.deg2rad().cos(), strength.deg2rad().sin()
    # The photo is `ratio` wide and 1 high; the canvas holds all four corners.
    width = views.ratio * cosine.abs() + sine.abs()
    height = views.ratio * sine.abs() + cosine.abs()
    zero = torch.zeros_like(sine)
    back = affine(cosine * width / views.ratio, -sine * height / views.ratio, zero, sine * width, cosine * height, zero)
    return Views(warp(views.pixels, back), width / height)


@edit("spatial", bounds=(0.01, 1.0), neutral=1.0)
def crop(image: Image.Image, strength: float) -> Image.Image:
    """Crop the center; this fraction of the area remains."""
    return _cut(image, math.sqrt(strength), 0.5, 0.5)


@crop.differentiable
def _crop(views: Views, strength: Tensor) -> Views:
    side = strength.sqrt()
    return Views(warp(views.pixels, scaling(side, side), outside="border"), views.ratio)


@edit("spatial", bounds=(0.01, 1.0), neutral=1.0)
def part(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """Crop at a random position; this fraction of each side remains."""
    return _cut(image, strength, rng.random(), rng.random())


@part.differentiable
def _part(views: Views, strength: Tensor, generator: torch.Generator) -> Views:
    center = 2 * torch.rand((2, len(views)), generator=generator, device=strength.device, dtype=strength.dtype) - 1
    across, down = (1 - strength) * center
    zero = torch.zeros_like(strength)
    cut = affine(strength, zero, across, zero, strength, down)
    # With black outside, the outermost half pixel would fade after magnification.
    return Views(warp(views.pixels, cut, outside="border"), views.ratio)


@edit("spatial", bounds=(1, 100), neutral=100, whole=True)
def fragment(image: Image.Image, strength: int, rng: np.random.Generator) -> Image.Image:
    """Crop a rectangle of this percentage of the area, anywhere, of half to twice the photo's aspect ratio."""
    stretch, area = math.sqrt(sample_ratio(rng, "fragment")), strength / 100
    across = min(1.0, max(area, math.sqrt(area) * stretch))
    width, height = _scaled(image, across, area / across)
    left, top = (round((whole - size) * rng.random()) for whole, size in zip(image.size, (width, height), strict=True))
    return image.crop((left, top, left + width, top + height))


@fragment.differentiable
def _fragment(views: Views, strength: Tensor, generator: torch.Generator) -> Views:
    stretch, area = sample_ratios(views, "fragment", generator).sqrt(), strength / 100
    across = (area.sqrt() * stretch).maximum(area).clamp_max(1)
    down = area / across
    x, y = (2 * uniform(views, generator) - 1 for _ in range(2))
    zero = torch.zeros_like(across)
    cut = affine(across, zero, (1 - across) * x, zero, down, (1 - down) * y)
    return Views(warp(views.pixels, cut, outside="border"), views.ratio * across / down)


@edit("spatial", bounds=(1, 100), whole=True)
def rotated_fragment(image: Image.Image, strength: int, rng: np.random.Generator) -> Image.Image:
    """Crop a tilted rectangle of this percentage of the area, anywhere, and smaller where it would leave the photo."""
    ratio, angle = (
        sample_ratio(rng, "rotated-fragment"),
        math.radians(sample_parameter(rng, "rotated-fragment", "degrees")),
    )
    cosine, sine = math.cos(angle), math.sin(angle)
    high = math.sqrt(strength / 100 * image.width * image.height / ratio)
    bounds = high * (ratio * cosine + abs(sine)), high * (ratio * abs(sine) + cosine)
    high *= min(1.0, image.width / bounds[0], image.height / bounds[1])
    bounds = high * (ratio * cosine + abs(sine)), high * (ratio * abs(sine) + cosine)
    x, y = (size / 2 + (rng.random() - 0.5) * (size - bound) for size, bound in zip(image.size, bounds, strict=True))
    width, height = max(1, round(high * ratio)), max(1, round(high))
    corner = x - cosine * width / 2 + sine * height / 2, y - sine * width / 2 - cosine * height / 2
    return image.transform(
        (width, height),
        Image.Transform.AFFINE,
        (cosine, -sine, corner[0], sine, cosine, corner[1]),
        Image.Resampling.BICUBIC,
    )


@rotated_fragment.differentiable
def _rotated_fragment(views: Views, strength: Tensor, generator: torch.Generator) -> Views:
    # The photo is `views.ratio` wide and 1 high.
    ratio = sample_ratios(views, "rotated-fragment", generator)
    angle = sample_parameters(views, "rotated-fragment", "degrees", generator).deg2rad()
    cosine, sine = angle.cos(), angle.sin()
    high = (strength / 100 * views.ratio / ratio).sqrt()
    wide_bound, high_bound = ratio * cosine + sine.abs(), ratio * sine.abs() + cosine
    high = high.minimum(views.ratio / wide_bound).minimum(1 / high_bound)
    x, y = (2 * uniform(views, generator) - 1 for _ in range(2))
    across, down = high * ratio / views.ratio, high
    cut = affine(
        cosine * across,
        -sine * high / views.ratio,
        x * (1 - high * wide_bound / views.ratio),
        sine * high * ratio,
        cosine * down,
        y * (1 - high * high_bound),
    )
    return Views(warp(views.pixels, cut, outside="border"), ratio)


@edit("spatial", bounds=(0.01, 4.0), neutral=1.0)
def resize(image: Image.Image, strength: float) -> Image.Image:
    """Resize to this fraction of the area."""
    side = math.sqrt(strength)
    return image.resize(_scaled(image, side, side), Image.Resampling.BILINEAR)


@resize.differentiable
def _resize(views: Views, strength: Tensor) -> Views:
    """Keep the detail that fits into this fraction of the area; a fraction above 1 changes nothing."""
    count = (views.side * strength.clamp_max(1).sqrt()).round().clamp_min(1)
    return Views(apply_separable(views.pixels, _downscale_matrices(count, views.side)), views.ratio)


def _downscale_matrices(count: Tensor, side: int) -> Tensor:
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


@edit("spatial", bounds=(0.1, 10.0))
def aspect(image: Image.Image, strength: float) -> Image.Image:
    """Stretch to this ratio of width to height; the area stays the same."""
    stretch = math.sqrt(strength * image.height / image.width)
    return image.resize(_scaled(image, stretch, 1 / stretch), Image.Resampling.BILINEAR)


@aspect.differentiable
def _aspect(views: Views, strength: Tensor) -> Views:
    """Set the ratio of width to height; the pixels of the square stay the same."""
    return Views(views.pixels, strength)


@edit("spatial")
def flip(image: Image.Image) -> Image.Image:
    """Mirror left to right."""
    return ImageOps.mirror(image)


@flip.differentiable
def _flip(views: Views) -> Views:
    return Views(views.pixels.flip(-1), views.ratio)


@edit("spatial")
def pad(image: Image.Image) -> Image.Image:
    """Pad to a square with black bars."""
    side = max(image.size)
    return ImageOps.pad(image, (side, side))


@pad.differentiable
def _pad(views: Views) -> Views:
    back = scaling((1 / views.ratio).clamp_min(1), views.ratio.clamp_min(1))
    return Views(warp(views.pixels, back), torch.ones_like(views.ratio))


@edit("spatial", bounds=(0, 100), neutral=0, whole=True)
def perspective(image: Image.Image, strength: int, rng: np.random.Generator) -> Image.Image:
    """Move the four corners by normally distributed offsets; sigma is in thousandths of a side."""
    corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], dtype=float)
    # Offsets below a quarter of a side keep the quadrilateral convex.
    shifted = corners + np.clip(rng.normal(0, strength / 1000, (4, 2)), -0.24, 0.24)
    coefficients = find_homography(shifted * image.size, corners * image.size)
    return image.transform(image.size, Image.Transform.PERSPECTIVE, coefficients, Image.Resampling.BICUBIC)


@perspective.differentiable
def _perspective(views: Views, strength: Tensor, generator: torch.Generator) -> Views:
    corners = _corners(strength.device, strength.dtype).expand(len(views), -1, -1)
    normal = torch.randn(corners.shape, generator=generator, device=strength.device, dtype=strength.dtype)
    wander = (normal * strength[:, None, None] / 1000).clamp(-0.24, 0.24)
    # A side has length 2 in these coordinates.
    return Views(warp(views.pixels, homographies_between(corners + 2 * wander, corners)), views.ratio)


def find_homography(source: np.ndarray, target: np.ndarray) -> list[float]:
    """Coefficients a..h with target = (ax + by + c, dx + ey + f) / (gx + hy + 1), from four pairs of points."""
    rows = []
    for (x, y), (u, v) in zip(source, target, strict=True):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
    solution: list[float] = np.linalg.solve(np.array(rows), target.ravel()).tolist()
    return solution


@cached_tensor
def _corners(device: torch.device, dtype: torch.dtype) -> Tensor:
    return torch.tensor([(-1, -1), (1, -1), (1, 1), (-1, 1)], device=device, dtype=dtype)
