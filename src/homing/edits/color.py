"""Edits of color. Strengths mean what they mean in torchvision, and give the same pixels."""

from __future__ import annotations

from PIL import Image, ImageEnhance

from homing.edits.registry import edit


@edit("color", bounds=(0.0, 10.0), neutral=1.0)
def contrast(image: Image.Image, strength: float) -> Image.Image:
    """Distances from the mean gray times strength."""
    return ImageEnhance.Contrast(image).enhance(strength)


@edit("color", bounds=(0.0, 10.0), neutral=1.0)
def brightness(image: Image.Image, strength: float) -> Image.Image:
    """Values times strength."""
    return ImageEnhance.Brightness(image).enhance(strength)


@edit("color", bounds=(0.0, 10.0), neutral=1.0)
def saturation(image: Image.Image, strength: float) -> Image.Image:
    """Distances from the pixel's own gray times strength."""
    return ImageEnhance.Color(image).enhance(strength)


@edit("color", bounds=(-0.5, 0.5), neutral=0.0)
def hue(image: Image.Image, strength: float) -> Image.Image:
    """The color circle turned by this fraction of a full turn."""
    angle, chroma, value = image.convert("HSV").split()
    turned = angle.point([(level + int(strength * 255)) % 256 for level in range(256)])
    return Image.merge("HSV", (turned, chroma, value)).convert("RGB")


@edit("color")
def grayscale(image: Image.Image) -> Image.Image:
    """Luma alone."""
    return image.convert("L").convert("RGB")
