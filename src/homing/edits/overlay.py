"""Edits that put something on top of the photo."""

from __future__ import annotations

import string

import numpy as np
from PIL import Image, ImageDraw

from homing.edits._text import load_font
from homing.edits.registry import edit

GLYPHS = list(string.ascii_letters + string.digits + "!?&#@%")


@edit("overlay", bounds=(0.01, 1.0))
def text(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """Five to fifteen random glyphs, of a random colour and place; this fraction of the height, or less to fit."""
    glyphs = "".join(rng.choice(GLYPHS, size=rng.integers(5, 15, endpoint=True)))
    size = strength * image.height
    size *= min(1.0, image.width / load_font(size).getlength(glyphs))
    font = load_font(size)
    left = rng.random() * max(0.0, image.width - font.getlength(glyphs))
    top = rng.random() * max(0.0, image.height - size)
    red, green, blue = rng.integers(256, size=3).tolist()
    result = image.copy()
    ImageDraw.Draw(result).text((left, top), glyphs, fill=(red, green, blue), font=font)
    return result


@edit("overlay", bounds=(0.01, 1.0))
def emoji(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """A smiley in a random place, half to fully opaque; this fraction of the shorter side."""
    side = max(1, round(strength * min(image.size)))
    face = _smiley().resize((side, side), Image.Resampling.LANCZOS)
    opacity = rng.uniform(0.5, 1.0)
    mask = face.getchannel("A").point([round(opacity * level) for level in range(256)])
    left = int(rng.integers(image.width - side, endpoint=True))
    top = int(rng.integers(image.height - side, endpoint=True))
    result = image.copy()
    result.paste(face.convert("RGB"), (left, top), mask)
    return result


def _smiley() -> Image.Image:
    """A yellow face on a transparent square of 512 pixels, to be scaled."""
    yellow, brown = (255, 204, 51), (92, 58, 12)
    # Transparent yellow, not black: scaling mixes it into the rim.
    face = Image.new("RGBA", (512, 512), (*yellow, 0))
    draw = ImageDraw.Draw(face)
    draw.ellipse((8, 8, 504, 504), fill=yellow, outline=(214, 150, 20), width=12)
    draw.ellipse((146, 140, 206, 236), fill=brown)
    draw.ellipse((306, 140, 366, 236), fill=brown)
    draw.chord((116, 190, 396, 420), start=10, end=170, fill=brown)
    draw.chord((176, 330, 336, 450), start=200, end=340, fill=(224, 90, 90))
    return face
