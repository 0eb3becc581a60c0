"""Edits that AugLy draws, with the pictures and the letters it carries: an emoji, words, a screenshot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
from PIL import Image

from homing._extras import load_extra
from homing.edits.registry import edit

_MAX_ASPECT = 200  # times as long as wide


@edit("overlay", bounds=(0.01, 1.0))
def emoji(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """One of the emojis, half to fully opaque, in a random place; this fraction of the photo's height.

    Where that is more than an upright photo is wide, the right of it is cut off, as AugLy does.
    """
    across = min(1.0, strength * image.height / image.width)
    copy: Image.Image = _augly().overlay_emoji(
        image,
        emoji_path=_draw(_assets("EMOJI_DIR", "*/*.png"), rng),
        emoji_size=strength,
        opacity=rng.uniform(0.5, 1.0),
        x_pos=rng.uniform(0.0, 1.0 - across),
        y_pos=rng.uniform(0.0, 1.0 - strength),
    )
    return copy


@edit("overlay", bounds=(0.01, 1.0))
def text(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """Five to fifteen glyphs of any script and color, in a random place; this fraction of the shorter side."""
    legible = min(1.0, max(strength, 6.5 / min(image.size)))  # less than six pixels are dust, none an error
    glyphs = rng.integers(2**16, size=rng.integers(5, 15, endpoint=True))
    copy: Image.Image = _augly().overlay_text(
        image,
        text=glyphs.tolist(),
        font_file=_draw(_assets("FONTS_DIR", "Noto*.ttf"), rng),  # every script; some of its others no longer load
        font_size=legible,
        color=tuple(rng.integers(256, size=3).tolist()),
        x_pos=rng.uniform(0.0, 0.5),  # a long text may run out of the photo, but begins well inside
        y_pos=rng.uniform(0.0, 1.0 - legible),
    )
    return copy


@edit("spatial")
def screenshot(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """The photo as posted: in the page of a social network, on a telephone or a computer."""
    page = _draw(_assets("SCREENSHOT_TEMPLATES_DIR", "*.png"), rng)
    copy: Image.Image = _augly().overlay_onto_screenshot(_widen(image), template_filepath=page)
    return copy


def _widen(image: Image.Image) -> Image.Image:
    """The photo, widened if it is so narrow that nothing would be left of it on a page."""
    least = math.ceil(max(image.size) / _MAX_ASPECT)
    return image if min(image.size) >= least else image.resize((max(image.width, least), max(image.height, least)))


def _draw(files: Sequence[str], rng: np.random.Generator) -> str:
    return files[int(rng.integers(len(files)))]


@cache
def _assets(folder: str, pattern: str) -> tuple[str, ...]:
    """What AugLy carries, in an order that is the same everywhere."""
    root = Path(getattr(load_extra("augly.utils", extra="bench"), folder))
    return tuple(sorted(map(str, root.glob(pattern))))


def _augly() -> ModuleType:
    return load_extra("augly.image", extra="bench")
