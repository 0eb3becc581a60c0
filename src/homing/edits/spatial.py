"""Edits of geometry: crops, rotations, resizing and other transforms."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageOps

from homing.edits.registry import edit


@edit("spatial", bounds=(-180, 180), neutral=0, whole=True)
def rotation(image: Image.Image, strength: int) -> Image.Image:
    """Rotate counterclockwise by this many degrees, on a black canvas that holds the whole photo."""
    return image.rotate(strength, Image.Resampling.BILINEAR, expand=True)


@edit("spatial", bounds=(0.01, 1.0), neutral=1.0)
def crop(image: Image.Image, strength: float) -> Image.Image:
    """Crop the center; this fraction of the area remains."""
    return _cut(image, math.sqrt(strength), 0.5, 0.5)


@edit("spatial", bounds=(0.01, 1.0), neutral=1.0)
def fragment(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """Crop at a random position; this fraction of each side remains."""
    return _cut(image, strength, rng.random(), rng.random())


def _cut(image: Image.Image, side: float, across: float, down: float) -> Image.Image:
    """Crop to this fraction of each side; position (0, 0) is the top left corner, (1, 1) the bottom right one."""
    width, height = _scaled(image, side, side)
    left = round((image.width - width) * across)
    top = round((image.height - height) * down)
    return image.crop((left, top, left + width, top + height))


def _scaled(image: Image.Image, across: float, down: float) -> tuple[int, int]:
    return max(1, round(image.width * across)), max(1, round(image.height * down))


@edit("spatial", bounds=(0.01, 4.0), neutral=1.0)
def resize(image: Image.Image, strength: float) -> Image.Image:
    """Resize to this fraction of the area."""
    side = math.sqrt(strength)
    return image.resize(_scaled(image, side, side), Image.Resampling.BILINEAR)


@edit("spatial", bounds=(0.1, 10.0))
def aspect(image: Image.Image, strength: float) -> Image.Image:
    """Stretch to this ratio of width to height; the area stays the same."""
    stretch = math.sqrt(strength * image.height / image.width)
    return image.resize(_scaled(image, stretch, 1 / stretch), Image.Resampling.BILINEAR)


@edit("spatial")
def flip(image: Image.Image) -> Image.Image:
    """Mirror left to right."""
    return ImageOps.mirror(image)


@edit("spatial")
def pad(image: Image.Image) -> Image.Image:
    """Pad to a square with black bars."""
    side = max(image.size)
    return ImageOps.pad(image, (side, side))


@edit("spatial", bounds=(0, 100), neutral=0, whole=True)
def perspective(image: Image.Image, strength: int, rng: np.random.Generator) -> Image.Image:
    """Move the four corners by normally distributed offsets; sigma is in thousandths of a side."""
    corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], dtype=float)
    # Offsets below a quarter of a side keep the quadrilateral convex.
    shifted = corners + np.clip(rng.normal(0, strength / 1000, (4, 2)), -0.24, 0.24)
    coefficients = _homography(shifted * image.size, corners * image.size)
    return image.transform(image.size, Image.Transform.PERSPECTIVE, coefficients, Image.Resampling.BICUBIC)


def _homography(source: np.ndarray, target: np.ndarray) -> list[float]:
    """Coefficients a..h with target = (ax + by + c, dx + ey + f) / (gx + hy + 1), from four pairs of points."""
    rows = []
    for (x, y), (u, v) in zip(source, target, strict=True):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
    solution: list[float] = np.linalg.solve(np.array(rows), target.ravel()).tolist()
    return solution
