"""Pictures and HTML pages to look at: conversion, differences, JND maps, data URLs, templates."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from homing._io.files import write_atomically
from homing.errors import HomingError
from homing.perception import jnd_map

MAGNIFY = 20
_SIDE = 420  # pixels: maximum side of a picture on an HTML page
_GAP, _CAPTION, _NARROWEST = 12, 34, 160


def to_image(pixels: Tensor) -> Image.Image:
    """Convert (3, H, W) pixels in [0, 1] to an 8-bit RGB image."""
    return Image.fromarray((pixels * 255).round().clamp(0, 255).byte().permute(1, 2, 0).contiguous().numpy())


def to_pixels(image: Image.Image) -> Tensor:
    """Convert an 8-bit RGB image to (3, H, W) pixels in [0, 1]."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255


def difference(before: Tensor, after: Tensor) -> Image.Image:
    """The difference of two images, magnified 20 times, around mid-gray."""
    return to_image(0.5 + MAGNIFY * (after - before))


def jnd_picture(pixels: Tensor) -> Image.Image:
    """The just-noticeable-difference map: brighter pixels may change more."""
    jnd = jnd_map(pixels[None])[0]
    return to_image((jnd / jnd.max()).expand(3, -1, -1))


def make_thumbnail(pixels: Tensor, side: int = _SIDE) -> Image.Image:
    """An image of (3, H, W) pixels, scaled down to at most `side` pixels a side."""
    image = to_image(pixels)
    image.thumbnail((side, side))
    return image


def encode_jpeg(image: Image.Image, quality: int = 90, *, optimize: bool = False) -> bytes:
    """Encode as JPEG, without metadata."""
    file = BytesIO()
    image.save(file, format="JPEG", quality=quality, optimize=optimize)
    return file.getvalue()


def encode_png(image: Image.Image) -> bytes:
    """Encode as PNG, without metadata."""
    file = BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()


def data_url(jpeg: bytes) -> str:
    """A data URL that holds a JPEG file."""
    return "data:image/jpeg;base64," + base64.b64encode(jpeg).decode()


def embed(image: Image.Image) -> str:
    """A data URL that holds the image as a JPEG of at most 420 pixels a side."""
    small = image.convert("RGB")
    small.thumbnail((_SIDE, _SIDE))
    return data_url(encode_jpeg(small, quality=88))


def comparison(before: Tensor, after: Tensor) -> Image.Image:
    """Before, after and the magnified difference side by side, each with a caption."""
    panels = {
        "original": to_image(before),
        "released": to_image(after),
        f"difference x{MAGNIFY}": difference(before, after),  # Pillow's default font has no ×
    }
    width, height = max(before.shape[2], _NARROWEST), before.shape[1]
    sheet = Image.new("RGB", (len(panels) * (width + _GAP) - _GAP, height + _CAPTION), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=20)
    for position, (name, panel) in enumerate(panels.items()):
        left = position * (width + _GAP)
        draw.text((left + 2, 5), name, fill="black", font=font)
        sheet.paste(panel, (left, _CAPTION))
    return sheet


def save_png(image: Image.Image, path: Path) -> None:
    """Write a PNG file. Raises HomingError if the path cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, encode_png(image))
    except OSError as error:
        raise HomingError(f"cannot write the picture {path}: {error.strerror}") from error


def render_page(template: str, values: Mapping[str, object], package: str = "homing") -> bytes:
    """Fill in a template of a package, or of homing itself, for an HTML page that loads nothing else.

    Values are escaped unless the template marks them safe.
    """
    templates = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, "homing"))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return templates.get_template(template).render(values).encode(errors="replace")
