"""Masks with smooth edges, which Pillow's own shapes lack; drawn larger and then reduced."""

from __future__ import annotations

from functools import lru_cache

from PIL import Image, ImageDraw

from homing.edits.screens.icons import draw_icon

_FINE = 4
"""Masks are drawn this many times larger."""


@lru_cache(maxsize=256)
def disc_mask(diameter: int) -> Image.Image:
    """A disc that fills its square."""
    side = _FINE * max(1, diameter)
    mask = Image.new("L", (side, side))
    ImageDraw.Draw(mask).ellipse((0, 0, side - 1, side - 1), fill=255)
    return mask.reduce(_FINE)


@lru_cache(maxsize=512)
def icon_mask(name: str, side: int) -> Image.Image:
    """An icon that fills its square."""
    mask = Image.new("L", (_FINE * side, _FINE * side))
    draw_icon(ImageDraw.Draw(mask), name, _FINE * side, width=max(_FINE, round(_FINE * side / 13)))
    return mask.reduce(_FINE)


def rounded_mask(width: int, height: int, radius: int) -> Image.Image:
    """A rectangle with round corners of at most this radius."""
    radius = min(radius, width // 2, height // 2)
    mask = Image.new("L", (width, height), 255)
    corner = disc_mask(2 * radius)
    for x in (0, radius):
        for y in (0, radius):
            part = corner.crop((x, y, x + radius, y + radius))
            mask.paste(part, (x and width - radius, y and height - radius))
    return mask
