"""Web pages and screens of apps in which a photo covers a given share of the area, among texts and other pictures."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from homing.edits._assets import texts
from homing.edits._surroundings import Surroundings
from homing.edits.screens.canvas import Canvas

WIDE = ((1024, 640), (1200, 736), (1280, 720), (1280, 800), (1100, 760))
TALL = ((360, 640), (390, 780), (414, 736), (768, 1024), (820, 1100))
MARGIN = 0.97
"""Largest width of a photo, as a share of the page's."""

BAR = 0.08
"""Height of the bar at the top, as a share of the page's."""

Page = Callable[[np.random.Generator, float, float, Surroundings], Canvas]


def _canvas(rng: np.random.Generator, ratio: float, area: float) -> tuple[Canvas, float, float]:
    """A canvas of a size that holds a photo of this ratio on this share of its area, and the photo's width and height.

    A photo that fits into no size gets a smaller share, on the canvas of the closest shape.
    """
    fitting = [
        (width, height)
        for width, height in WIDE + TALL
        if math.sqrt(area * width * height * ratio) <= MARGIN * width
        and math.sqrt(area * width * height / ratio) <= (1 - BAR - 0.02) * height
    ]
    closest = min(WIDE + TALL, key=lambda size: abs(math.log(size[0] / size[1] / ratio)))
    screen = Canvas(rng, fitting or [closest], dark_share=0.35)
    wide = math.sqrt(area * screen.width * screen.height * ratio)
    shrink = min(1.0, MARGIN * screen.width / wide, (1 - BAR - 0.02) * screen.height * ratio / wide)
    return screen, shrink * wide, shrink * wide / ratio


def _bar(screen: Canvas) -> float:
    """Draw a bar with a name and a menu. Returns its height."""
    high = BAR * screen.height
    fill = screen.pick((screen.theme.card, screen.theme.accent, screen.theme.line))
    ink = "#ffffff" if fill == screen.theme.accent else screen.theme.ink
    screen.box(0, 0, screen.width, high, fill)
    used = screen.text(16, high / 2, screen.pick(texts("apps") + texts("sites")), 0.4 * high, ink, bold=True)
    x = used + 50
    for section in screen.sample(texts("sections"), 3, 7):
        if x + 70 > screen.width:
            break
        x += screen.text(x, high / 2, section, 0.26 * high, ink) + 22
    return high


def _position(screen: Canvas, wide: float, high: float, top: float) -> tuple[float, float]:
    """A random position of the photo below the bar."""
    left = screen.uniform(0.015, 1.0) * max(0.0, MARGIN * screen.width - wide)
    return left, top + screen.uniform(0.0, 1.0) * max(0.0, screen.height - top - high)


def article(rng: np.random.Generator, ratio: float, area: float, surroundings: Surroundings) -> Canvas:
    """Text around the photo, and a column of other stories with pictures where there is space."""
    screen, wide, high = _canvas(rng, ratio, area)
    top = _bar(screen)
    left, y = _position(screen, wide, high, top)
    size = screen.pick((13, 15, 17))
    if y - top > 50:
        below = screen.paragraph(left, top + 10, max(wide, 200), screen.word("headlines"), min(28.0, 0.3 * (y - top)))
        if below < y - 2 * size:
            screen.paragraph(left, below + 6, max(wide, 200), screen.sentences(2, 6), size, screen.theme.faint)
    for start, width in ((0.0, left), (left + wide, screen.width - left - wide)):
        if width > 110:
            _stories(screen, start + 10, top + 10, width - 20, surroundings)
    screen.box(left - 3, y - 3, wide + 6, screen.height, screen.theme.page)
    screen.photo(left, y, wide, high)
    screen.text(left, y + high + 10, f"Photo: {screen.word('names')}", 11, screen.theme.faint)
    screen.paragraph(left, y + high + 24, max(wide, 160), screen.sentences(5, 12), size)
    return screen


def _stories(screen: Canvas, left: float, top: float, width: float, surroundings: Surroundings) -> None:
    """Draw a column of pictures with headlines, or of text."""
    y, pictures = top, screen.happens(0.75)
    high = screen.pick((0.45, 0.6, 0.75)) * width
    while y < screen.height:
        if pictures:
            screen.picture(left, y, width, high, surroundings)
            y += high + 6
        y = screen.paragraph(left, y, width, screen.pick(texts("headlines") + texts("sentences")), 13) + 14


def feed(rng: np.random.Generator, ratio: float, area: float, surroundings: Surroundings) -> Canvas:
    """A post with the photo; parts of the posts before and after it."""
    screen, wide, high = _canvas(rng, ratio, area)
    top = _bar(screen)
    left, y = _position(screen, wide, high, top)
    column = max(wide, 0.4 * screen.width)
    for end in (y - 46, y + high + 46):  # the picture of the post before ends there, the next one begins there
        start, depth = (
            (end, 0.8 * column) if end > y else (max(top, end - 0.8 * column), end - max(top, end - 0.8 * column))
        )
        if depth > 8 and start < screen.height:
            screen.picture(left, start + (30 if end > y else 0), column, depth, surroundings)
    screen.box(left - 4, y - 46, column + 8, high + 92, screen.theme.card)
    screen.avatar(left + 20, y - 23, 15)
    screen.text(left + 44, y - 30, screen.word("handles"), 13, bold=True)
    screen.text(left + 44, y - 14, screen.word("when"), 11, screen.theme.faint)
    screen.photo(left, y, wide, high)
    screen.icons(("heart", "comment", "send"), left, left + 110, y + high + 18, 18)
    screen.text(left + 4, y + high + 36, f"{screen.word('counts')} likes", 12)
    if screen.width - left - column > 200:
        _stories(screen, left + column + 24, top + 12, screen.width - left - column - 44, surroundings)
    return screen


def tiles(rng: np.random.Generator, ratio: float, area: float, surroundings: Surroundings) -> Canvas:
    """A wall of pictures with the photo among them: results of a search, a shop, a gallery."""
    screen, wide, high = _canvas(rng, ratio, area)
    top = _bar(screen)
    left, y = _position(screen, wide, high, top)
    side = screen.uniform(0.12, 0.3) * screen.width
    gap, caption = screen.pick((2, 6, 12)), screen.pick((0, 0, 26))
    row = top + gap
    while row < screen.height:
        depth, x = screen.uniform(0.6, 1.1) * side, float(gap)
        while x < screen.width:
            width = screen.uniform(0.7, 1.5) * side
            screen.picture(x, row, width, depth, surroundings)
            if caption:
                screen.text(x, row + depth + 12, screen.pick(texts("phrases") + texts("names")), 12)
            x += width + gap
        row += depth + gap + caption
    screen.box(left - gap, y - gap, wide + 2 * gap, high + 2 * gap + caption, screen.theme.page)
    screen.photo(left, y, wide, high)
    if caption:
        screen.text(left, y + high + 12, screen.word("sentences"), 12)
    return screen


PAGES: tuple[Page, ...] = (article, feed, tiles)
"""Layouts: functions that draw a random page for a photo of a given ratio, on a given share of the area."""
