"""Bundled emojis, fonts, texts and icons of the edits, in `data/`; tools/build_edit_assets.py builds the first two."""

from __future__ import annotations

import json
import string
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageFont

DATA = Path(__file__).with_name("data")
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
