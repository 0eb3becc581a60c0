"""Edits that draw an emoji, a sticker, a text or the caption of a meme over or above a photo."""

from __future__ import annotations

import math

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from homing.edits._assets import draw_emoji, draw_writing, load_font, manifest, texts
from homing.edits._registry import edit
from homing.edits._templates import draw_around, draw_over
from homing.edits._views import Views
from homing.edits._wild import WILD, sample_parameter

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


@edit("overlay", bounds=(0.01, 1.0))
def sticker(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """Paste an opaque sticker, tilted, at a random position; its side is this fraction of the photo's shorter side."""
    side = max(8, round(strength * min(image.size)))
    picture = (
        draw_emoji(rng).resize((side, side), Image.Resampling.BICUBIC) if rng.random() < 0.5 else _badge(rng, side)
    )
    picture = picture.rotate(sample_parameter(rng, "sticker", "degrees"), Image.Resampling.BICUBIC)
    position = tuple(round((whole - side) * rng.random()) for whole in image.size)
    result = image.copy()
    result.paste(picture, (position[0], position[1]), picture)
    return result


@sticker.differentiable
def _sticker(views: Views, strength: Tensor, generator: torch.Generator) -> Views:
    return draw_over("sticker", views, strength, generator)


def _badge(rng: np.random.Generator, side: int) -> Image.Image:
    """A disc or a rounded square in one color, with a few words on it."""
    badge = Image.new("RGBA", (side, side))
    draw = ImageDraw.Draw(badge)
    hue, dark = int(rng.integers(360)), bool(rng.random() < 0.5)
    radius = side // 2 if rng.random() < 0.5 else side // 6
    fill = f"hsl({hue}, 75%, {30 if dark else 75}%)"
    draw.rounded_rectangle((0, 0, side - 1, side - 1), radius, fill=fill)
    font = load_font(_latin(rng), max(SMALLEST, side // 6))
    lines = wrap(str(rng.choice(texts("phrases"))), font, 0.75 * side)
    draw.multiline_text(
        (side / 2, side / 2),
        "\n".join(lines),
        fill="white" if dark else "black",
        font=font,
        anchor="mm",
        align="center",
    )
    return badge


def _latin(rng: np.random.Generator) -> str:
    """The file of a random Latin font."""
    fonts = manifest().latin
    return fonts[int(rng.integers(len(fonts)))]


@edit("overlay")
def overlay_text(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Write one to four lines on the photo, outlined or on a translucent band."""
    settings = WILD["overlay-text"]
    size = max(SMALLEST, round(sample_parameter(rng, "overlay-text", "size") * min(image.size)))
    font = load_font(_latin(rng), size)
    sentences = texts("captions") + texts("sentences") + texts("headlines") + texts("phrases")
    low, high = settings["lines"]
    lines = wrap(" ".join(rng.choice(sentences, 3)), font, 0.9 * image.width)[: int(rng.integers(low, high + 1))]
    text, high = "\n".join(lines), LEADING * size * len(lines)
    y = (0.5 * size + rng.random() * max(0.0, image.height - high - size)) + high / 2
    dark = bool(rng.random() < 0.5)
    ink, paper = ("black", "white") if dark else ("white", "black")
    if rng.random() < 0.4:
        ink = f"hsl({int(rng.integers(360))}, 90%, {30 if dark else 70}%)"
    result = image.copy()
    band = rng.random() < settings["band-share"]
    if band:
        box = (0, max(0, round(y - high / 2 - 0.3 * size)), image.width, round(y + high / 2 + 0.3 * size))
        result.paste(paper, box, Image.new("L", (box[2] - box[0], box[3] - box[1]), int(rng.integers(90, 230))))
    ImageDraw.Draw(result).multiline_text(
        (image.width / 2, y),
        text,
        fill=ink,
        font=font,
        anchor="mm",
        align="center",
        spacing=(LEADING - 1) * size,
        stroke_width=0 if band else max(1, size // 14),
        stroke_fill=paper,
    )
    return result


@overlay_text.differentiable
def _overlay_text(views: Views, generator: torch.Generator) -> Views:
    return draw_over("overlay-text", views, None, generator)


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
    return draw_around("meme", views, None, generator)


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
