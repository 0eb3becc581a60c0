"""A screen being drawn: shapes, texts and icons in screen pixels, and a slot where the photo goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from PIL import Image, ImageDraw, ImageOps

from homing.edits._assets import SUPERSAMPLING, draw_emoji, icon_mask, load_font, texts
from homing.edits._surroundings import Surroundings

LARGE = 60
"""Smallest radius without smooth edges: the masks of larger discs would fill the cache."""

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
    """Choose one of the items, each equally likely."""
    return items[int(rng.integers(len(items)))]


def draw_theme(rng: np.random.Generator, dark_share: float = 0.5) -> Theme:
    """Draw a light or a dark theme; this share of them is dark."""
    dark = bool(rng.random() < dark_share)
    page, card = pick(rng, _DARK if dark else _LIGHT)
    font, bold = pick(rng, _FONTS)
    ink, faint, line = ("#f1f1f1", "#9a9da1", "#3a3b3d") if dark else ("#15171a", "#707479", "#dcdee1")
    accent = pick(rng, _ACCENTS)
    return Theme(page=page, card=card, ink=ink, faint=faint, line=line, accent=accent, font=font, bold=bold)


class Canvas:
    """An empty screen of a random theme and size. Positions and sizes are in its pixels.

    `slot` is the position of the photo: left, top, width and height.
    """

    def __init__(self, rng: np.random.Generator, sizes: Sequence[tuple[int, int]], dark_share: float = 0.5) -> None:
        self.rng, self.theme = rng, draw_theme(rng, dark_share)
        self.width, self.height = pick(rng, sizes)
        self._image = Image.new("RGB", (self.width, self.height), self.theme.page)
        self._draw = ImageDraw.Draw(self._image)
        self.slot: tuple[int, int, int, int] | None = None
        self._radius = 0

    def pick(self, items: Sequence[Item]) -> Item:
        """Choose one of the items, each equally likely."""
        return pick(self.rng, items)

    def sample(self, items: Sequence[Item], least: int, most: int) -> list[Item]:
        """Choose from `least` to `most` different items."""
        count = int(self.rng.integers(least, most, endpoint=True))
        return [items[index] for index in self.rng.permutation(len(items))[:count].tolist()]

    def word(self, kind: str) -> str:
        """Choose one of the bundled texts of a kind."""
        return self.pick(texts(kind))

    def integer(self, low: int, high: int) -> int:
        """A random integer from `low` to below `high`."""
        return int(self.rng.integers(low, high))

    def uniform(self, low: float, high: float) -> float:
        """A random number between `low` and `high`."""
        return float(self.rng.uniform(low, high))

    def clock(self) -> str:
        """A random time of day."""
        return f"{self.integer(0, 24)}:{self.integer(0, 60):02}"

    def happens(self, probability: float) -> bool:
        """True with this probability."""
        return bool(self.rng.random() < probability)

    def box(
        self,
        left: float,
        top: float,
        width: float,
        height: float,
        fill: str,
        *,
        radius: int = 0,
        outline: str | None = None,
    ) -> None:
        """Draw a rectangle, with round corners if it has a radius and a thin border if it has an outline."""
        if outline:
            self.box(left, top, width, height, outline, radius=radius)
            left, top, width, height, radius = left + 1, top + 1, width - 2, height - 2, max(0, radius - 1)
        area = round(left), round(top), round(left + width), round(top + height)
        if radius:
            radius = max(0, min(radius, (area[2] - area[0]) // 2, (area[3] - area[1]) // 2))
        if radius:
            for x in (area[0], area[2] - 2 * radius):
                for y in (area[1], area[3] - 2 * radius):
                    self._image.paste(fill, (x, y), _disc_mask(2 * radius))
        self._rectangle(area[0] + radius, area[1], area[2] - radius, area[3], fill)
        self._rectangle(area[0], area[1] + radius, area[2], area[3] - radius, fill)

    def _rectangle(self, left: int, top: int, right: int, bottom: int, fill: str) -> None:
        if left < right and top < bottom:
            self._draw.rectangle((left, top, right - 1, bottom - 1), fill=fill)

    def disc(self, x: float, y: float, radius: float, fill: str) -> None:
        """Draw a disc around (x, y)."""
        if radius >= LARGE:
            self._draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)
        else:
            self._image.paste(fill, (round(x - radius), round(y - radius)), _disc_mask(round(2 * radius)))

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
        """Write a line of text. Returns its width."""
        font = load_font(self.theme.bold if bold else self.theme.font, round(size))
        self._draw.text((x, y), text, fill=color or self.theme.ink, font=font, anchor=anchor)
        return font.getlength(text)

    def paragraph(self, x: float, y: float, width: float, text: str, size: float, color: str | None = None) -> float:
        """Write text in lines of this width from y downward. Returns the y of the next line."""
        words, space = text.split(), _advance(self.theme.font, round(size), " ")
        widths = [_advance(self.theme.font, round(size), word) for word in words]
        start = 0
        while start < len(words) and y < self.height:
            end, used = start + 1, widths[start]
            while end < len(words) and used + space + widths[end] <= width:
                used += space + widths[end]
                end += 1
            self.text(x, y + 0.7 * size, " ".join(words[start:end]), size, color)
            y += 1.42 * size
            start = end
        return y

    def sentences(self, least: int, most: int) -> str:
        """From `least` to `most` random sentences."""
        return " ".join(self.sample(texts("sentences"), least, most))

    def icon(self, name: str, x: float, y: float, size: float, color: str | None = None) -> None:
        """Draw an icon around (x, y)."""
        side = round(size)
        self._image.paste(color or self.theme.ink, (round(x - size / 2), round(y - size / 2)), icon_mask(name, side))

    def icons(self, names: Sequence[str], left: float, right: float, y: float, size: float) -> None:
        """Draw icons in a row, evenly spread from left to right."""
        for number, name in enumerate(names):
            self.icon(name, left + (number + 0.5) * (right - left) / len(names), y, size)

    def avatar(self, x: float, y: float, radius: float) -> None:
        """Draw the round portrait of a user: an initial, a simple head or an emoji, on a random color."""
        hue = self.integer(0, 360)
        self.disc(x, y, radius, f"hsl({hue}, 45%, {self.integer(35, 75)}%)")
        kind = self.integer(0, 3)
        if kind == 0:
            self.text(x, y, self.word("names")[0], radius, "white", bold=True, anchor="mm")
        elif kind == 1:
            skin, shirt = (f"hsl({(hue + turn) % 360}, 40%, {light}%)" for turn, light in ((20, 82), (180, 30)))
            corner, side = (round(x - radius), round(y - radius)), round(2 * radius)
            self._image.paste(shirt, corner, icon_mask("shoulders", side))
            self._image.paste(skin, corner, icon_mask("head", side))
        else:
            self.emoji(x, y, 1.3 * radius)

    def emoji(self, x: float, y: float, size: float) -> None:
        """Draw a random emoji around (x, y)."""
        side = max(1, round(size))
        picture = draw_emoji(self.rng).resize((side, side), Image.Resampling.BILINEAR)
        self._image.paste(picture, (round(x) - side // 2, round(y) - side // 2), picture)

    def tile(self, left: float, top: float, width: float, height: float) -> None:
        """Draw a picture other than the photo: a small landscape of plain colors."""
        hue = self.integer(0, 360)
        self.box(left, top, width, height, f"hsl({hue}, {self.integer(15, 60)}%, 72%)")
        horizon = self.uniform(0.4, 0.75) * height
        self.box(left, top + horizon, width, height - horizon, f"hsl({(hue + 120) % 360}, 30%, 38%)")
        sun = 0.16 * min(width, height)
        self.disc(left + self.uniform(0.25, 0.75) * width, top + 0.3 * height, sun, f"hsl({hue}, 60%, 90%)")

    def picture(self, left: float, top: float, width: float, height: float, surroundings: Surroundings) -> None:
        """Show one of the surroundings, cut to these sides."""
        size = max(2, round(width)), max(2, round(height))
        self._image.paste(
            ImageOps.fit(surroundings.pick(self.rng), size, Image.Resampling.BILINEAR), (round(left), round(top))
        )

    def photo(self, left: float, top: float, width: float, height: float, *, radius: float = 0) -> None:
        """Reserve this rectangle for the photo."""
        assert self.slot is None
        self.slot = round(left), round(top), max(2, round(width)), max(2, round(height))
        self._radius = round(radius)

    def finish(self, photo: Image.Image) -> Image.Image:
        """The screen, with the photo in its slot."""
        assert self.slot is not None
        left, top, width, height = self.slot
        small = photo.resize((width, height), Image.Resampling.BICUBIC, reducing_gap=3.0)
        if self._radius:
            self._image.paste(small, (left, top), _rounded_mask(width, height, self._radius))
        else:
            self._image.paste(small, (left, top))
        return self._image


@lru_cache(maxsize=4096)
def _advance(font: str, size: int, word: str) -> float:
    return load_font(font, size).getlength(word)


def fit(ratio: float, width: float, height: float) -> tuple[float, float]:
    """The largest width and height of this ratio within these."""
    return min(width, height * ratio), min(height, width / ratio)


@lru_cache(maxsize=256)
def _disc_mask(diameter: int) -> Image.Image:
    """A disc that fills its square."""
    side = SUPERSAMPLING * max(1, diameter)
    mask = Image.new("L", (side, side))
    ImageDraw.Draw(mask).ellipse((0, 0, side - 1, side - 1), fill=255)
    return mask.reduce(SUPERSAMPLING)


def _rounded_mask(width: int, height: int, radius: int) -> Image.Image:
    """A rectangle with round corners of at most this radius."""
    radius = min(radius, width // 2, height // 2)
    mask = Image.new("L", (width, height), 255)
    corner = _disc_mask(2 * radius)
    for x in (0, radius):
        for y in (0, radius):
            part = corner.crop((x, y, x + radius, y + radius))
            mask.paste(part, (x and width - radius, y and height - radius))
    return mask
