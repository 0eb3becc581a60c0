"""Words for edits that write on a photo or around it, in the font that comes with Pillow."""

from __future__ import annotations

from PIL import ImageFont

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

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

HANDLES = ("the.daily.frame", "old_town_pics", "lens_and_light", "city.walks", "trail_notes", "kitchen.window")


def load_font(size: float) -> Font:
    """The built-in font, at least six pixels tall: smaller letters are dust."""
    return ImageFont.load_default(size=max(6.0, size))


def wrap(text: str, font: Font, width: float) -> list[str]:
    """The text in lines no wider than that, unless a single word is."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and font.getlength(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
