"""Bundled emojis, fonts, texts and icons of the edits, in `data/`; tools/build_edit_assets.py builds the first two."""

from __future__ import annotations

import json
import math
import string
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

DATA = Path(__file__).with_name("data")

SUPERSAMPLING = 4
"""Masks are drawn this many times larger and reduced, which smooths their edges; Pillow's shapes have none."""

Shape = tuple[Literal["line", "fill", "ring", "disc"], tuple[float, ...]]
"""A polyline or polygon (x, y, x, y, …), or a circle (x, y, radius), in the unit square."""

_COLUMNS = 8  # emojis in a row of a sheet


class _Manifest(NamedTuple):
    emojis: dict[str, int]
    latin: tuple[str, ...]
    scripts: dict[str, str]


@cache
def manifest() -> _Manifest:
    """Number of emojis by kind, files of Latin fonts, and the characters of each font of another script."""
    loaded = json.loads((DATA / "assets.json").read_text(encoding="utf-8"))
    return _Manifest(loaded["emojis"], tuple(loaded["latin"]), loaded["scripts"])


@cache
def texts(kind: str) -> list[str]:
    """The texts of a kind in `data/texts.json`: phrases of 5 to 15 characters, captions, names, sentences, …."""
    listed: list[str] = json.loads((DATA / "texts.json").read_text(encoding="utf-8"))[kind]
    return listed


@cache
def _sheet(kind: str) -> Image.Image:
    with Image.open(DATA / "emojis" / f"{kind}.png") as file:
        sheet: Image.Image = file.convert("RGBA")
    return sheet


def emoji_picture(number: int) -> Image.Image:
    """Emoji `number`, in the order of the sheets: a square RGBA image."""
    for kind, count in manifest().emojis.items():
        if number < count:
            sheet = _sheet(kind)
            side = sheet.width // _COLUMNS
            left, top = number % _COLUMNS * side, number // _COLUMNS * side
            return sheet.crop((left, top, left + side, top + side))
        number -= count
    raise IndexError(f"there are {emoji_count()} emojis")


@cache
def emoji_count() -> int:
    """Number of emojis of all kinds."""
    return sum(manifest().emojis.values())


def draw_emoji(rng: np.random.Generator) -> Image.Image:
    """One of all emojis, each equally likely."""
    return emoji_picture(int(rng.integers(emoji_count())))


@lru_cache(maxsize=256)
def load_font(file: str, size: int) -> ImageFont.FreeTypeFont:
    """A font of `data/fonts` at this size in pixels."""
    # Raqm is not installed everywhere and shapes text differently; the basic layout gives the same pixels everywhere.
    return ImageFont.truetype(str(DATA / "fonts" / file), size, layout_engine=ImageFont.Layout.BASIC)


def draw_writing(rng: np.random.Generator) -> tuple[str, str]:
    """A text of 5 to 15 characters and the file of a font that has them.

    Half of the texts are phrases in a Latin font, an eighth are random Latin letters, the others are random glyphs
    of another script.
    """
    fonts, phrases, luck = manifest().latin, texts("phrases"), rng.random()
    if luck < 0.5:
        return phrases[int(rng.integers(len(phrases)))], fonts[int(rng.integers(len(fonts)))]
    file, characters = fonts[int(rng.integers(len(fonts)))], string.ascii_letters + string.digits
    if luck >= 0.625:
        scripts = manifest().scripts
        file = tuple(scripts)[int(rng.integers(len(scripts)))]
        characters = scripts[file]
    numbers = rng.integers(len(characters), size=rng.integers(5, 15, endpoint=True))
    return "".join(characters[number] for number in numbers), file


@lru_cache(maxsize=512)
def icon_mask(name: str, side: int) -> Image.Image:
    """An icon that fills its square."""
    mask = Image.new("L", (SUPERSAMPLING * side, SUPERSAMPLING * side))
    _draw_icon(
        ImageDraw.Draw(mask), name, SUPERSAMPLING * side, width=max(SUPERSAMPLING, round(SUPERSAMPLING * side / 13))
    )
    return mask.reduce(SUPERSAMPLING)


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
