"""Edits of pixel values by filters, codecs and noise."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image, ImageFilter

from homing.edits.registry import edit


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


@edit("pixel", bounds=(1, 100), whole=True)
def jpeg(image: Image.Image, strength: int) -> Image.Image:
    """Encode as JPEG of this quality and decode again."""
    file = BytesIO()
    image.save(file, format="JPEG", quality=strength)
    return Image.open(file).convert("RGB")


@edit("pixel", bounds=(2, 256), whole=True)
def palette(image: Image.Image, strength: int) -> Image.Image:
    """Reduce to this number of colors, chosen for the photo."""
    return image.quantize(strength).convert("RGB")


@edit("pixel")
def edges(image: Image.Image) -> Image.Image:
    """Enhance edges."""
    return image.filter(ImageFilter.EDGE_ENHANCE_MORE)


@edit("pixel", bounds=(0.01, 1.0), neutral=1.0)
def pixelate(image: Image.Image, strength: float) -> Image.Image:
    """Replace blocks of pixels by their mean; each side has this fraction of the original number of pixels."""
    width, height = image.size
    blocks = (max(1, round(width * strength)), max(1, round(height * strength)))
    return image.resize(blocks, Image.Resampling.BOX).resize(image.size, Image.Resampling.NEAREST)


@edit("pixel", bounds=(0.0, 1.0), neutral=0.0)
def shuffle(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """Permute this fraction of the pixels at random."""
    pixels = np.array(image)
    flat = pixels.reshape(-1, 3)
    chosen = rng.choice(len(flat), size=round(strength * len(flat)), replace=False)
    flat[chosen] = flat[rng.permutation(chosen)]
    return Image.fromarray(pixels)
