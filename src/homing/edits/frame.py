"""Edits that put something around the photo: a caption above it, the window of a social network."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw

from homing.edits._text import CAPTIONS, HANDLES, load_font, wrap
from homing.edits.registry import edit

LEADING = 1.25
"""From line to line, in font sizes."""

RED = (237, 73, 86)


@edit("overlay")
def meme(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """A white bar above the photo, with a caption in heavy black letters."""
    size = max(6.0, min(image.width / 14, image.height / 5))
    font = load_font(size)
    lines = wrap(str(rng.choice(CAPTIONS)), font, 0.92 * image.width)
    bar = math.ceil((LEADING * len(lines) + 0.8) * size)
    result = Image.new("RGB", (image.width, image.height + bar), "white")
    draw = ImageDraw.Draw(result)
    for number, line in enumerate(lines):
        middle = (image.width / 2, (0.4 + LEADING * (number + 0.5)) * size)
        # The built-in font has one weight; a stroke makes it bold.
        draw.text(middle, line, fill="black", font=font, anchor="mm", stroke_width=size / 30, stroke_fill="black")
    result.paste(image, (0, bar))
    return result


@edit("spatial")
def screenshot(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """The photo as posted: who posted it above, icons and a caption below, on a light or a dark page."""
    page, ink = ("white", (38, 38, 38)) if rng.random() < 0.5 else ((18, 18, 20), (235, 235, 235))
    unit = max(6, min(image.size) // 16)
    font = load_font(0.8 * unit)
    width = image.width + 2 * unit
    lines = wrap(str(rng.choice(CAPTIONS)), font, image.width)
    below = 3 * unit + image.height
    height = below + round((2.6 + LEADING * len(lines)) * unit)

    result = Image.new("RGB", (width, height), page)
    result.paste(image, (unit, 3 * unit))
    draw = ImageDraw.Draw(result)
    _draw_poster(draw, unit, ink, rng)
    _draw_icons(draw, unit, below, ink)
    for number, line in enumerate(lines):
        draw.text((unit, below + (2.2 + LEADING * number) * unit), line, fill=ink, font=font)
    draw.rectangle((0, 0, width - 1, height - 1), outline=(128, 128, 128))
    return result


def _draw_poster(draw: ImageDraw.ImageDraw, unit: int, ink: tuple[int, int, int], rng: np.random.Generator) -> None:
    """A round avatar and a name, in the three units above the photo."""
    name = str(rng.choice(HANDLES))
    red, green, blue = rng.integers(60, 220, size=3).tolist()
    draw.ellipse((unit, 0.5 * unit, 3 * unit, 2.5 * unit), fill=(red, green, blue))
    draw.text((2 * unit, 1.5 * unit), name[0].upper(), fill="white", font=load_font(1.2 * unit), anchor="mm")
    draw.text((3.5 * unit, 1.5 * unit), name, fill=ink, font=load_font(0.9 * unit), anchor="lm", stroke_width=unit / 60)


def _draw_icons(draw: ImageDraw.ImageDraw, unit: int, top: int, ink: tuple[int, int, int]) -> None:
    """A heart, a speech bubble and a paper plane, in the two units below the photo."""
    line = max(1, unit // 10)

    def at(x: float, y: float) -> tuple[float, float]:
        return (1 + x) * unit, top + (0.5 + y) * unit

    draw.ellipse((*at(0, 0), *at(0.66, 0.66)), fill=RED)
    draw.ellipse((*at(0.54, 0), *at(1.2, 0.66)), fill=RED)
    draw.polygon((at(0.06, 0.5), at(0.6, 0.3), at(1.14, 0.5), at(0.6, 1.2)), fill=RED)
    draw.ellipse((*at(1.9, 0), *at(3.1, 1.1)), outline=ink, width=line)
    draw.polygon((at(2.1, 0.9), at(2.0, 1.25), at(2.5, 1.08)), fill=ink)
    draw.polygon((at(3.8, 0.1), at(5.0, 0.1), at(4.3, 1.2), at(4.25, 0.6)), outline=ink, width=line)
    draw.line((at(4.25, 0.6), at(5.0, 0.1)), fill=ink, width=line)
