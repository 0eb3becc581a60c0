"""A screen being drawn: shapes, texts and icons in screen pixels, and a slot where the photo goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from PIL import Image, ImageDraw

from homing.edits.assets import draw_emoji, load_font
from homing.edits.meme import wrap
from homing.edits.screens.icons import draw_icon
from homing.edits.screens.words import NAMES, SENTENCES

FINE = 2
"""Screens are drawn this many times larger, then reduced: Pillow's shapes have no smooth edges."""

Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True)
class Theme:
    """Colors and fonts of an app."""

    page: str
    card: str
    ink: str
    faint: str
    line: str
    accent: str
    font: str
    bold: str


_LIGHT = (("#ffffff", "#ffffff"), ("#f0f2f5", "#ffffff"), ("#fafafa", "#ffffff"), ("#f6f3ec", "#fffdf8"))
_DARK = (("#000000", "#000000"), ("#18191a", "#242526"), ("#15202b", "#15202b"), ("#121212", "#1e1e1e"))
_ACCENTS = ("#1877f2", "#e1306c", "#1da1f2", "#25a55a", "#ff4500", "#7b3ff2", "#0a8f8f", "#d62828", "#f2a900")
_FONTS = (
    ("sans.otf", "sans-bold.otf"),
    ("grotesque.ttf", "grotesque-bold.ttf"),
    ("humanist.ttf", "humanist-bold.ttf"),
)


def pick(rng: np.random.Generator, items: Sequence[Item]) -> Item:
    """One of the items, each equally likely."""
    return items[int(rng.integers(len(items)))]


def draw_theme(rng: np.random.Generator, *, dark: bool | None = None) -> Theme:
    """A light or a dark theme, each equally likely unless one is asked for."""
    if dark is None:
        dark = bool(rng.random() < 0.5)
    page, card = pick(rng, _DARK if dark else _LIGHT)
    font, bold = pick(rng, _FONTS)
    ink, faint, line = ("#f1f1f1", "#9a9da1", "#3a3b3d") if dark else ("#15171a", "#707479", "#dcdee1")
    accent = pick(rng, _ACCENTS)
    return Theme(page=page, card=card, ink=ink, faint=faint, line=line, accent=accent, font=font, bold=bold)


class Canvas:
    """An empty screen of this size; positions and sizes of everything drawn are in its pixels."""

    def __init__(self, width: int, height: int, theme: Theme, rng: np.random.Generator) -> None:
        self.width, self.height, self.theme, self.rng = width, height, theme, rng
        self._image = Image.new("RGB", (FINE * width, FINE * height), theme.page)
        self._draw = ImageDraw.Draw(self._image)
        self._slot: tuple[int, int, int, int] | None = None
        self._radius = 0

    def pick(self, items: Sequence[Item]) -> Item:
        """One of the items, each equally likely."""
        return pick(self.rng, items)

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return bool(self.rng.random() < probability)

    def box(
        self,
        left: float,
        top: float,
        width: float,
        height: float,
        fill: str | None,
        *,
        radius: float = 0,
        outline: str | None = None,
    ) -> None:
        """A rectangle, with round corners if it has a radius."""
        area = (FINE * left, FINE * top, FINE * (left + width) - 1, FINE * (top + height) - 1)
        if radius:
            self._draw.rounded_rectangle(area, FINE * radius, fill=fill, outline=outline, width=FINE)
        else:
            self._draw.rectangle(area, fill=fill, outline=outline, width=FINE)

    def disc(self, x: float, y: float, radius: float, fill: str) -> None:
        """A disc around (x, y)."""
        area = (FINE * (x - radius), FINE * (y - radius), FINE * (x + radius), FINE * (y + radius))
        self._draw.ellipse(area, fill=fill)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        color: str | None = None,
        *,
        bold: bool = False,
        anchor: str = "lm",
    ) -> float:
        """Write a line of text; how wide it is."""
        font = load_font(self.theme.bold if bold else self.theme.font, round(FINE * size))
        self._draw.text((FINE * x, FINE * y), text, fill=color or self.theme.ink, font=font, anchor=anchor)
        return font.getlength(text) / FINE

    def paragraph(self, x: float, y: float, width: float, text: str, size: float, color: str | None = None) -> float:
        """Write text in lines of this width from y downward; where the next line would begin."""
        font = load_font(self.theme.font, round(FINE * size))
        for line in wrap(text, font, FINE * width):
            if y < self.height:
                self.text(x, y + 0.7 * size, line, size, color)
            y += 1.42 * size
        return y

    def sentences(self, least: int, most: int) -> str:
        """So many random sentences, or a number between."""
        return " ".join(self.pick(SENTENCES) for _ in range(int(self.rng.integers(least, most, endpoint=True))))

    def icon(self, name: str, x: float, y: float, size: float, color: str | None = None) -> None:
        """An icon around (x, y)."""
        width = max(FINE, round(FINE * size / 13))
        corner = FINE * (x - size / 2), FINE * (y - size / 2)
        draw_icon(self._draw, name, *corner, FINE * size, color or self.theme.ink, width)

    def icons(self, names: Sequence[str], left: float, right: float, y: float, size: float) -> None:
        """Icons in a row, evenly spread from left to right."""
        for number, name in enumerate(names):
            self.icon(name, left + (number + 0.5) * (right - left) / len(names), y, size)

    def avatar(self, x: float, y: float, radius: float) -> None:
        """The round portrait of some user: an initial, a simple head or an emoji, on any color."""
        hue = int(self.rng.integers(360))
        self.disc(x, y, radius, f"hsl({hue}, 45%, {int(self.rng.integers(35, 75))}%)")
        kind = int(self.rng.integers(3))
        if kind == 0:
            self.text(x, y, self.pick(NAMES)[0], radius, "white", bold=True, anchor="mm")
        elif kind == 1:
            skin, shirt = (f"hsl({hue + turn}, 40%, {light}%)" for turn, light in ((20, 82), (180, 30)))
            self.disc(x, y - 0.2 * radius, 0.38 * radius, skin)
            self._draw.chord(
                [FINE * each for each in (x - 0.66 * radius, y + 0.2 * radius, x + 0.66 * radius, y + 1.5 * radius)],
                205,
                335,
                fill=shirt,
            )
        else:
            self.emoji(x, y, 1.3 * radius)

    def emoji(self, x: float, y: float, size: float) -> None:
        """Some emoji around (x, y)."""
        side = max(1, round(FINE * size))
        picture = draw_emoji(self.rng).resize((side, side), Image.Resampling.BILINEAR)
        self._image.paste(picture, (round(FINE * x) - side // 2, round(FINE * y) - side // 2), picture)

    def tile(self, left: float, top: float, width: float, height: float) -> None:
        """A picture that is not the photo: a small landscape of plain colors."""
        hue = int(self.rng.integers(360))
        self.box(left, top, width, height, f"hsl({hue}, {int(self.rng.integers(15, 60))}%, 72%)")
        horizon = float(self.rng.uniform(0.4, 0.75)) * height
        self.box(left, top + horizon, width, height - horizon, f"hsl({(hue + 120) % 360}, 30%, 38%)")
        sun = 0.16 * min(width, height)
        self.disc(left + float(self.rng.uniform(0.25, 0.75)) * width, top + 0.3 * height, sun, f"hsl({hue}, 60%, 90%)")

    def photo(self, left: float, top: float, width: float, height: float, *, radius: float = 0) -> None:
        """Reserve this rectangle for the photo."""
        assert self._slot is None
        self._slot = round(left), round(top), max(2, round(width)), max(2, round(height))
        self._radius = round(radius)

    def finish(self, photo: Image.Image) -> Image.Image:
        """The screen, with the photo in its slot."""
        assert self._slot is not None
        left, top, width, height = self._slot
        screen = self._image.reduce(FINE)
        small = photo.resize((width, height), Image.Resampling.BICUBIC, reducing_gap=3.0)
        radius = min(self._radius, width // 2, height // 2)
        if not radius:
            screen.paste(small, (left, top))
            return screen
        mask = Image.new("L", (FINE * width, FINE * height))
        ImageDraw.Draw(mask).rounded_rectangle((0, 0, FINE * width - 1, FINE * height - 1), FINE * radius, fill=255)
        screen.paste(small, (left, top), mask.reduce(FINE))
        return screen


def fit(ratio: float, width: float, height: float) -> tuple[float, float]:
    """The largest width and height of this ratio within these."""
    return min(width, height * ratio), min(height, width / ratio)
