"""Edits that draw an emoji, a text or the caption of a meme over or above a photo."""

from __future__ import annotations

import math

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from homing.edits._assets import draw_emoji, draw_writing, load_font, texts
from homing.edits._registry import edit
from homing.edits._templates import draw_around, draw_over
from homing.edits._views import Views

SMALLEST = 6
"""Height of letters in pixels, at least: smaller ones cannot be read."""

LEADING = 1.25
"""Distance between lines of a caption, as a multiple of the font size."""

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


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


@emoji.differentiable
def _emoji(views: Views, strength: Tensor, generator: torch.Generator) -> Views:
    return draw_over("emoji", views, strength, generator)


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


@text.differentiable
def _text(views: Views, strength: Tensor, generator: torch.Generator) -> Views:
    return draw_over("text", views, strength, generator)


@edit("overlay")
def meme(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Add a white bar with a bold black caption above the photo."""
    size = max(6.0, min(image.width / 14, image.height / 5))  # smaller letters cannot be read
    font = ImageFont.load_default(size=size)
    lines = wrap(str(rng.choice(texts("captions"))), font, 0.92 * image.width)
    bar = math.ceil((LEADING * len(lines) + 0.8) * size)
    result = Image.new("RGB", (image.width, image.height + bar), "white")
    draw = ImageDraw.Draw(result)
    for number, line in enumerate(lines):
        middle = (image.width / 2, (0.4 + LEADING * (number + 0.5)) * size)
        # The built-in font has one weight; a stroke makes it bold.
        draw.text(middle, line, fill="black", font=font, anchor="mm", stroke_width=size / 30, stroke_fill="black")
    result.paste(image, (0, bar))
    return result


@meme.differentiable
def _meme(views: Views, generator: torch.Generator) -> Views:
    return draw_around("meme", views, generator)


def wrap(text: str, font: Font, width: float) -> list[str]:
    """Break a text into lines of at most this width; a wider word gets a line of its own."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and font.getlength(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
