"""Edits of color, with the strengths and pixels of torchvision."""

from __future__ import annotations

from PIL import Image, ImageEnhance

from homing.edits.registry import edit


@edit("color", bounds=(0.0, 10.0), neutral=1.0)
def contrast(image: Image.Image, strength: float) -> Image.Image:
    """Multiply the distance of every value from the mean gray by the strength."""
    return ImageEnhance.Contrast(image).enhance(strength)


@edit("color", bounds=(0.0, 10.0), neutral=1.0)
def brightness(image: Image.Image, strength: float) -> Image.Image:
    """Multiply every value by the strength."""
    return ImageEnhance.Brightness(image).enhance(strength)


@edit("color", bounds=(0.0, 10.0), neutral=1.0)
def saturation(image: Image.Image, strength: float) -> Image.Image:
    """Multiply the distance of every value from the pixel's own gray by the strength."""
    return ImageEnhance.Color(image).enhance(strength)


@edit("color", bounds=(-0.5, 0.5), neutral=0.0)
def hue(image: Image.Image, strength: float) -> Image.Image:
    """Rotate the hue by this fraction of the color circle."""
    angle, chroma, value = image.convert("HSV").split()
    rotated = angle.point([(level + int(strength * 255)) % 256 for level in range(256)])
    return Image.merge("HSV", (rotated, chroma, value)).convert("RGB")


@edit("color")
def grayscale(image: Image.Image) -> Image.Image:
    """Replace every pixel by its luma."""
    return image.convert("L").convert("RGB")
