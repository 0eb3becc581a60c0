"""The meme edit: a caption above the photo."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from homing.edits.registry import edit

LEADING = 1.25
"""Distance between lines of text, as a multiple of the font size."""

CAPTIONS = (
    "when you finally get the photo right",
    "nobody: absolutely nobody: me on a Monday morning",
    "one does not simply scroll past this",
    "they said it could not be done, and here we are again",
    "me, pretending to understand the meeting",
    "expectation versus reality",
    "tell me you love weekends without telling me",
    "that moment when the coffee starts to work",
    "I was told there would be cake",
    "how it started, how it is going",
    "still a better story than my holiday",
    "keep calm and send this to a friend",
)

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


@edit("overlay")
def meme(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Add a white bar with a bold black caption above the photo."""
    size = max(6.0, min(image.width / 14, image.height / 5))  # smaller letters cannot be read
    font = ImageFont.load_default(size=size)
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
