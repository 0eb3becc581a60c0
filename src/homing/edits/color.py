"""Edits of color, with the strengths and pixels of torchvision."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image, ImageEnhance
from torch import Tensor

from homing.edits._registry import edit
from homing.edits._views import Views, edit_image
from homing.edits._wild import WILD, normal, sample_parameters, uniform


def luma(pixels: Tensor) -> Tensor:
    """Luma (B, 1, S, S), with the weights of JPEG and Pillow."""
    red, green, blue = pixels.chunk(3, dim=1)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def _away_from(gray: Tensor, views: Views, strength: Tensor) -> Views:
    return Views(gray + strength[:, None, None, None] * (views.pixels - gray), views.ratio)


@edit("color", bounds=(0.0, 10.0), neutral=1.0)
def contrast(image: Image.Image, strength: float) -> Image.Image:
    """Multiply the distance of every value from the mean gray by the strength."""
    return ImageEnhance.Contrast(image).enhance(strength)


@contrast.differentiable
def _contrast(views: Views, strength: Tensor) -> Views:
    return _away_from(luma(views.pixels).mean(dim=(2, 3), keepdim=True), views, strength)


@edit("color", bounds=(0.0, 10.0), neutral=1.0)
def brightness(image: Image.Image, strength: float) -> Image.Image:
    """Multiply every value by the strength."""
    return ImageEnhance.Brightness(image).enhance(strength)


@brightness.differentiable
def _brightness(views: Views, strength: Tensor) -> Views:
    return Views(views.pixels * strength[:, None, None, None], views.ratio)


@edit("color", bounds=(0.0, 10.0), neutral=1.0)
def saturation(image: Image.Image, strength: float) -> Image.Image:
    """Multiply the distance of every value from the pixel's own gray by the strength."""
    return ImageEnhance.Color(image).enhance(strength)


@saturation.differentiable
def _saturation(views: Views, strength: Tensor) -> Views:
    return _away_from(luma(views.pixels), views, strength)


@edit("color", bounds=(-0.5, 0.5), neutral=0.0)
def hue(image: Image.Image, strength: float) -> Image.Image:
    """Rotate the hue by this fraction of the color circle."""
    angle, chroma, value = image.convert("HSV").split()
    rotated = angle.point([(level + int(strength * 255)) % 256 for level in range(256)])
    return Image.merge("HSV", (rotated, chroma, value)).convert("RGB")


@hue.differentiable
def _hue(views: Views, strength: Tensor) -> Views:
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


@edit("color")
def grayscale(image: Image.Image) -> Image.Image:
    """Replace every pixel by its luma."""
    return image.convert("L").convert("RGB")


@grayscale.differentiable
def _grayscale(views: Views) -> Views:
    return Views(luma(views.pixels).expand_as(views.pixels), views.ratio)


@edit("color")
def filter_(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Grade the colors as a photo app does: saturation, contrast, gamma, tinted shadows and lights, a vignette."""
    return edit_image(_filter, image, rng)


@filter_.differentiable
def _filter(views: Views, generator: torch.Generator) -> Views:
    def value(key: str) -> Tensor:
        return sample_parameters(views, "filter", key, generator)[:, None, None, None]

    settings = WILD["filter"]
    gray = (uniform(views, generator) < settings["gray-share"])[:, None, None, None]
    pixels, light = views.pixels, luma(views.pixels)
    pixels = light + torch.where(gray, 0, value("saturation")) * (pixels - light)
    pixels = 0.5 + value("contrast") * (pixels - 0.5)
    pixels = pixels.clamp(1e-3, 1) ** value("gamma")
    for share in (1 - light, light):  # shadows, then lights
        pixels = pixels + settings["tint"] * normal(views, 3, 1, 1, generator=generator) * share
    fade = value("fade")
    pixels = fade + (1 - fade) * pixels
    down, across = (torch.linspace(-1, 1, side, device=pixels.device) for side in pixels.shape[-2:])
    radius = (down[:, None].square() + across.square()) / 2
    return Views(pixels * (1 - value("vignette") * radius), views.ratio)
