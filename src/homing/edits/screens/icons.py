"""Masks with smooth edges, which Pillow's own shapes lack, of discs, round corners and icons."""

from __future__ import annotations

import json
import math
from functools import cache, lru_cache
from typing import Literal

from PIL import Image, ImageDraw

from homing.edits._assets import DATA

Shape = tuple[Literal["line", "fill", "ring", "disc"], tuple[float, ...]]
"""A polyline or polygon (x, y, x, y, …), or a circle (x, y, radius), in the unit square."""

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
    _draw_icon(ImageDraw.Draw(mask), name, _FINE * side, width=max(_FINE, round(_FINE * side / 13)))
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


@cache
def icons() -> dict[str, list[Shape]]:
    """The shapes of every icon: those of `data/icons.json`, and curves."""
    shapes: dict[str, list[Shape]] = json.loads((DATA / "icons.json").read_text(encoding="utf-8"))
    return {"heart": [("line", _heart())], "liked": [("fill", _heart())], "star": [("line", _star())], **shapes}


def _heart() -> tuple[float, ...]:
    points: list[float] = []
    for step in range(25):
        angle = 2 * math.pi * step / 24
        x = 16 * math.sin(angle) ** 3
        y = 13 * math.cos(angle) - 5 * math.cos(2 * angle) - 2 * math.cos(3 * angle) - math.cos(4 * angle)
        points += (0.5 + x / 36, 0.46 - y / 36)
    return tuple(points)


def _star() -> tuple[float, ...]:
    points: list[float] = []
    for step in range(11):
        angle, radius = math.pi * step / 5, 0.48 if step % 2 == 0 else 0.2
        points += (0.5 + radius * math.sin(angle), 0.52 - radius * math.cos(angle))
    return tuple(points)


def _draw_icon(draw: ImageDraw.ImageDraw, name: str, size: int, width: int) -> None:
    """Draw an icon in white, of this size; strokes are `width` pixels wide."""
    for shape, numbers in icons()[name]:
        if shape in ("ring", "disc"):
            x, y, radius = (size * number for number in numbers)
            box = (x - radius, y - radius, x + radius, y + radius)
            if shape == "disc":
                draw.ellipse(box, fill=255)
            else:
                draw.ellipse(box, outline=255, width=width)
            continue
        points = [(size * x, size * y) for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
        if shape == "fill":
            draw.polygon(points, fill=255)
        else:
            draw.line(points, fill=255, width=width, joint="curve")
