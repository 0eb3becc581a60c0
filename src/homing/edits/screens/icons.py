"""Icons as strokes in the unit square, drawn at any size and color."""

from __future__ import annotations

import math
from typing import Literal

from PIL import ImageDraw

Shape = tuple[Literal["line", "fill", "ring", "disc"], tuple[float, ...]]
"""A polyline or polygon (x, y, x, y, …), or a circle (x, y, radius)."""


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


_FRAME = (0.08, 0.2, 0.92, 0.2, 0.92, 0.8, 0.08, 0.8, 0.08, 0.2)

ICONS: dict[str, tuple[Shape, ...]] = {
    "heart": (("line", _heart()),),
    "liked": (("fill", _heart()),),
    "star": (("line", _star()),),
    "comment": (("line", (0.1, 0.15, 0.9, 0.15, 0.9, 0.7, 0.5, 0.7, 0.28, 0.92, 0.28, 0.7, 0.1, 0.7, 0.1, 0.15)),),
    "send": (
        ("line", (0.06, 0.12, 0.94, 0.12, 0.42, 0.94, 0.34, 0.46, 0.06, 0.12)),
        ("line", (0.34, 0.46, 0.94, 0.12)),
    ),
    "bookmark": (("line", (0.22, 0.06, 0.78, 0.06, 0.78, 0.94, 0.5, 0.68, 0.22, 0.94, 0.22, 0.06)),),
    "search": (("ring", (0.42, 0.42, 0.32)), ("line", (0.66, 0.66, 0.95, 0.95))),
    "home": (("line", (0.06, 0.5, 0.5, 0.1, 0.94, 0.5)), ("line", (0.2, 0.4, 0.2, 0.92, 0.8, 0.92, 0.8, 0.4))),
    "bell": (
        ("line", (0.15, 0.75, 0.25, 0.6, 0.28, 0.3, 0.5, 0.1, 0.72, 0.3, 0.75, 0.6, 0.85, 0.75, 0.15, 0.75)),
        ("disc", (0.5, 0.86, 0.08)),
    ),
    "menu": tuple(("line", (0.08, y, 0.92, y)) for y in (0.22, 0.5, 0.78)),
    "dots": tuple(("disc", (x, 0.5, 0.09)) for x in (0.15, 0.5, 0.85)),
    "more": tuple(("disc", (0.5, y, 0.09)) for y in (0.15, 0.5, 0.85)),
    "back": (("line", (0.66, 0.1, 0.28, 0.5, 0.66, 0.9)),),
    "arrow": (("line", (0.5, 0.1, 0.1, 0.5, 0.5, 0.9)), ("line", (0.1, 0.5, 0.92, 0.5))),
    "forward": (("line", (0.34, 0.1, 0.72, 0.5, 0.34, 0.9)),),
    "plus": (("line", (0.5, 0.1, 0.5, 0.9)), ("line", (0.1, 0.5, 0.9, 0.5))),
    "minus": (("line", (0.12, 0.5, 0.88, 0.5)),),
    "close": (("line", (0.15, 0.15, 0.85, 0.85)), ("line", (0.15, 0.85, 0.85, 0.15))),
    "square": (("line", (0.15, 0.15, 0.85, 0.15, 0.85, 0.85, 0.15, 0.85, 0.15, 0.15)),),
    "reload": (("ring", (0.5, 0.5, 0.36)), ("fill", (0.7, 0.1, 0.98, 0.1, 0.86, 0.42))),
    "share": (
        ("line", (0.25, 0.4, 0.12, 0.4, 0.12, 0.94, 0.88, 0.94, 0.88, 0.4, 0.75, 0.4)),
        ("line", (0.3, 0.26, 0.5, 0.06, 0.7, 0.26)),
        ("line", (0.5, 0.06, 0.5, 0.62)),
    ),
    "repost": (
        ("line", (0.06, 0.4, 0.22, 0.2, 0.38, 0.4)),
        ("line", (0.22, 0.2, 0.22, 0.78, 0.6, 0.78)),
        ("line", (0.62, 0.6, 0.78, 0.8, 0.94, 0.6)),
        ("line", (0.78, 0.8, 0.78, 0.22, 0.4, 0.22)),
    ),
    "person": (("ring", (0.5, 0.3, 0.2)), ("line", (0.1, 0.94, 0.16, 0.7, 0.34, 0.6, 0.66, 0.6, 0.84, 0.7, 0.9, 0.94))),
    "head": (("disc", (0.5, 0.4, 0.2)),),
    "shoulders": (
        ("fill", (0.14, 0.84, 0.24, 0.7, 0.4, 0.62, 0.6, 0.62, 0.76, 0.7, 0.86, 0.84, 0.7, 0.95, 0.3, 0.95)),
    ),
    "mail": (("line", _FRAME), ("line", (0.08, 0.2, 0.5, 0.55, 0.92, 0.2))),
    "picture": (("line", _FRAME), ("line", (0.1, 0.78, 0.38, 0.42, 0.58, 0.66, 0.7, 0.54, 0.9, 0.78))),
    "camera": (("line", _FRAME), ("ring", (0.5, 0.5, 0.18)), ("line", (0.35, 0.2, 0.42, 0.08, 0.58, 0.08, 0.65, 0.2))),
    "video": (
        ("line", (0.05, 0.22, 0.65, 0.22, 0.65, 0.78, 0.05, 0.78, 0.05, 0.22)),
        ("line", (0.65, 0.45, 0.95, 0.25, 0.95, 0.75, 0.65, 0.55)),
    ),
    "phone": (
        (
            "line",
            (
                0.1,
                0.1,
                0.32,
                0.08,
                0.42,
                0.34,
                0.3,
                0.46,
                0.54,
                0.7,
                0.66,
                0.58,
                0.92,
                0.68,
                0.9,
                0.9,
                0.6,
                0.88,
                0.12,
                0.4,
                0.1,
                0.1,
            ),
        ),
    ),
    "trash": (
        ("line", (0.1, 0.22, 0.9, 0.22)),
        ("line", (0.2, 0.22, 0.26, 0.94, 0.74, 0.94, 0.8, 0.22)),
        ("line", (0.38, 0.22, 0.4, 0.08, 0.6, 0.08, 0.62, 0.22)),
    ),
    "download": (
        ("line", (0.5, 0.06, 0.5, 0.66)),
        ("line", (0.26, 0.44, 0.5, 0.68, 0.74, 0.44)),
        ("line", (0.1, 0.92, 0.9, 0.92)),
    ),
    "lock": (
        ("fill", (0.2, 0.45, 0.8, 0.45, 0.8, 0.92, 0.2, 0.92)),
        ("line", (0.32, 0.45, 0.32, 0.2, 0.5, 0.1, 0.68, 0.2, 0.68, 0.45)),
    ),
    "edit": (("line", (0.1, 0.9, 0.16, 0.66, 0.72, 0.1, 0.9, 0.28, 0.34, 0.84, 0.1, 0.9)),),
    "check": (("line", (0.08, 0.55, 0.36, 0.82, 0.92, 0.2)),),
    "play": (("fill", (0.25, 0.12, 0.88, 0.5, 0.25, 0.88)),),
    "up": (("fill", (0.5, 0.1, 0.92, 0.55, 0.66, 0.55, 0.66, 0.9, 0.34, 0.9, 0.34, 0.55, 0.08, 0.55)),),
    "grid": tuple(
        ("fill", (x, y, x + 0.32, y, x + 0.32, y + 0.32, x, y + 0.32)) for x in (0.1, 0.58) for y in (0.1, 0.58)
    ),
}
"""Shapes of every icon."""


def draw_icon(draw: ImageDraw.ImageDraw, name: str, size: int, width: int) -> None:
    """Draw an icon in white, of this size; strokes are `width` pixels wide."""
    for shape, numbers in ICONS[name]:
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
