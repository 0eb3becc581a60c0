"""Pictures for people: before, after, and what is between them."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from homing._io.files import write_atomically
from homing.errors import HomingError
from homing.perception import jnd_map

MAGNIFY = 20
_GAP, _CAPTION, _NARROWEST = 12, 34, 160


def to_image(pixels: Tensor) -> Image.Image:
    """A (3, H, W) view as an 8-bit RGB image."""
    return Image.fromarray((pixels * 255).round().clamp(0, 255).byte().permute(1, 2, 0).contiguous().numpy())


def to_pixels(image: Image.Image) -> Tensor:
    """An 8-bit RGB image as a (3, H, W) view."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255


def difference(before: Tensor, after: Tensor) -> Image.Image:
    """What changed, twenty times as strong, around mid-gray."""
    return to_image(0.5 + MAGNIFY * (after - before))


def jnd_picture(pixels: Tensor) -> Image.Image:
    """The just-noticeable-difference map: the brighter, the more room."""
    jnd = jnd_map(pixels[None])[0]
    return to_image((jnd / jnd.max()).expand(3, -1, -1))


def comparison(before: Tensor, after: Tensor) -> Image.Image:
    """Before, after and the difference side by side, each with its name above."""
    panels = {
        "as it was": to_image(before),
        "as released": to_image(after),
        f"difference x{MAGNIFY}": difference(before, after),  # Pillow's own font has no ×
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
    """Write a picture; one that cannot be written is the caller's mistake."""
    file = BytesIO()
    image.save(file, format="PNG")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, file.getvalue())
    except OSError as error:
        raise HomingError(f"cannot write the picture {path}: {error.strerror}") from error
