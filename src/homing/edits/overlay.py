"""Edits that draw an emoji or a text over a photo."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from homing.edits.assets import draw_emoji, draw_writing, load_font
from homing.edits.registry import edit

SMALLEST = 6
"""Height of letters in pixels, at least: smaller ones cannot be read."""


@edit("overlay", bounds=(0.01, 1.0))
def emoji(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """Paste an emoji, 50 to 100 % opaque, at a random position; its side is this fraction of the photo's height.

    An emoji wider than the photo is cut off at the right.
    """
    picture = draw_emoji(rng)
    opacity = rng.uniform(0.5, 1.0)
    across = min(1.0, strength * image.height / image.width)
    left = int(image.width * rng.uniform(0.0, 1.0 - across))
    top = int(image.height * rng.uniform(0.0, 1.0 - strength))
    side = max(1, int(image.height * strength))
    picture = picture.resize((side, side), Image.Resampling.BICUBIC)
    mask = picture.getchannel("A").point([int(level * opacity) for level in range(256)])
    result = image.copy()
    result.paste(picture.convert("RGB"), (left, top), mask)
    return result


@edit("overlay", bounds=(0.01, 1.0))
def text(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """Write 5 to 15 characters at a random position; the font's size is this fraction of the shorter side.

    The characters are words or random glyphs of any script, in any color, half of them with an outline. A long text
    may run out of the photo on the right.
    """
    characters, file = draw_writing(rng)
    size = max(SMALLEST, int(strength * min(image.size)))
    color = tuple(rng.integers(256, size=3).tolist())
    outline = max(1, size // 16) if rng.random() < 0.5 else 0
    bright = 299 * color[0] + 587 * color[1] + 114 * color[2] > 127_500
    left = image.width * rng.uniform(0.0, 0.5)
    top = image.height * rng.uniform(0.0, max(0.0, 1.0 - size / image.height))
    result = image.copy()
    ImageDraw.Draw(result).text(
        (left, top),
        characters,
        fill=color,
        font=load_font(file, size),
        stroke_width=outline,
        stroke_fill="black" if bright else "white",
    )
    return result
