"""Screens of phones: a feed, a post, a chat, a viewer, a page in a browser."""

from __future__ import annotations

import numpy as np

from homing.edits._assets import texts
from homing.edits.screens.canvas import Canvas, fit

SIZES = ((360, 640), (360, 760), (375, 667), (390, 844), (412, 732), (414, 736), (414, 896))


def _phone(rng: np.random.Generator, dark_share: float = 0.5) -> Canvas:
    """A phone with its status bar, 24 pixels high."""
    screen = Canvas(rng, SIZES, dark_share)
    theme = screen.theme
    screen.text(14, 13, screen.clock(), 11, bold=True)
    right = screen.width - 14
    level = screen.uniform(0.2, 1.0)
    screen.box(right - 22, 8, 20, 10, theme.page, radius=2, outline=theme.ink)
    screen.box(right - 20, 10, 16 * level, 6, theme.ink)
    for bar in range(4):
        screen.box(right - 46 + 4 * bar, 15 - 2 * bar, 3, 3 + 2 * bar, theme.ink if bar < 3 else theme.faint)
    if screen.happens(0.5):
        screen.text(right - 52, 13, screen.pick(("5G", "LTE", "4G")), 9, anchor="rm")
    return screen


def _bottom_bar(screen: Canvas) -> None:
    """Draw a row of icons at the bottom."""
    top = screen.height - 50
    screen.box(0, top, screen.width, 50, screen.theme.card)
    screen.box(0, top, screen.width, 1, screen.theme.line)
    last, middle = screen.pick(("person", "menu", "mail")), screen.pick(("plus", "camera", "video"))
    screen.icons(("home", "search", middle, "bell", last), 0, screen.width, top + 24, 21)


def feed(rng: np.random.Generator, ratio: float) -> Canvas:
    """A social network: the photo as wide as the screen, likes and comments below."""
    screen = _phone(rng)
    theme, width = screen.theme, screen.width
    screen.box(0, 26, width, 44, theme.card)
    screen.text(16, 48, screen.word("apps"), 20, screen.pick((theme.ink, theme.accent)), bold=True)
    screen.icons(("heart", "send") if screen.happens(0.5) else ("search", "menu"), width - 84, width - 4, 48, 20)
    y = 72.0
    if screen.happens(0.45):  # stories
        for number in range(1 + width // 72):
            x = 40 + 72 * number
            screen.disc(x, y + 36, 31, theme.accent)
            screen.disc(x, y + 36, 29, theme.card)
            screen.avatar(x, y + 36, 26)
            screen.text(x, y + 77, screen.word("handles")[:9], 9, theme.faint, anchor="mm")
        y += 92
    screen.box(0, y, width, screen.height, theme.card)
    screen.box(0, y, width, 1, theme.line)
    screen.avatar(32, y + 28, 17)
    name = screen.word("handles")
    screen.text(58, y + 21, name, 13, bold=True)
    screen.text(58, y + 37, screen.word("when"), 11, theme.faint)
    screen.icon("dots", width - 22, y + 28, 16)
    y += 56
    if screen.happens(0.4):
        y = screen.paragraph(14, y, width - 28, screen.word("sentences"), 14) + 6
    inset = screen.pick((0, 0, 8, 12))
    wide, high = fit(ratio, width - 2 * inset, max(120, screen.height - y - 150))
    screen.box(inset, y, width - 2 * inset, high, theme.page)
    screen.photo((width - wide) / 2, y, wide, high, radius=inset)
    y += high + 22
    screen.icon(screen.pick(("heart", "liked")), 26, y, 21, screen.pick((theme.ink, "#ed4956")))
    screen.icon("comment", 64, y, 21)
    screen.icon("send", 102, y, 21)
    screen.icon("bookmark", width - 26, y, 21)
    y += 28
    screen.text(14, y, f"{screen.word('counts')} likes", 13, bold=True)
    y = screen.paragraph(14, y + 12, width - 28, f"{name}  {screen.sentences(1, 3)}", 13)
    screen.text(14, y + 10, f"View all {screen.integer(3, 400)} comments", 12, theme.faint)
    y = screen.paragraph(14, y + 24, width - 28, f"{screen.word('handles')}  {screen.word('replies')}", 13) + 14
    if y < screen.height - 110:  # the next post
        screen.box(0, y, width, 1, theme.line)
        screen.avatar(32, y + 28, 17)
        screen.text(58, y + 28, screen.word("handles"), 13, bold=True)
        screen.tile(0, y + 56, width, 300)
    _bottom_bar(screen)
    return screen


def post(rng: np.random.Generator, ratio: float) -> Canvas:
    """A short message with the photo attached, and replies to it."""
    screen = _phone(rng)
    theme, width = screen.theme, screen.width
    screen.icon("arrow", 24, 48, 18)
    screen.text(56, 48, screen.pick(("Post", "Thread", "Photo", screen.word("names"))), 17, bold=True)
    screen.box(0, 70, width, 1, theme.line)
    name, narrow = screen.word("names"), screen.happens(0.5)
    screen.avatar(36, 102, 22)
    long = screen.text(68, 94, name, 14, bold=True)
    if screen.happens(0.4):
        screen.disc(68 + long + 12, 94, 7, theme.accent)
        screen.icon("check", 68 + long + 12, 94, 8, "#ffffff")
    screen.text(68, 112, f"@{screen.word('handles')} · {screen.word('when')}", 12, theme.faint)
    left = 68 if narrow else 16
    y = screen.paragraph(left, 132, width - left - 16, screen.sentences(1, 2), 15) + 8
    wide, high = fit(ratio, width - left - 16, max(140, screen.height - y - 190))
    screen.photo(left, y, wide, high, radius=screen.pick((0, 10, 16)))
    y += high + 20
    if screen.happens(0.5):
        screen.text(left, y, f"{screen.word('when')} · {screen.word('counts')} Views", 12, theme.faint)
        y += 24
    for number, icon in enumerate(("comment", "repost", "heart", "share")):
        x = left + 12 + number * (width - left - 30) / 4
        screen.icon(icon, x, y, 16, theme.faint)
        screen.text(x + 14, y, screen.word("counts"), 11, theme.faint)
    y += 24
    while y < screen.height - 50:
        screen.box(0, y, width, 1, theme.line)
        screen.avatar(36, y + 28, 18)
        screen.text(64, y + 18, screen.word("names"), 13, bold=True)
        y = screen.paragraph(64, y + 28, width - 80, screen.word("replies"), 13) + 22
    _bottom_bar(screen)
    return screen


def chat(rng: np.random.Generator, ratio: float) -> Canvas:
    """A chat: messages in bubbles, and the photo as one of them."""
    screen = _phone(rng)
    theme, width = screen.theme, screen.width
    bar, ink = screen.pick(((theme.card, theme.ink), (theme.accent, "#ffffff")))
    screen.box(0, 26, width, 54, bar)
    screen.icon("back", 18, 53, 20, ink)
    screen.avatar(54, 53, 18)
    screen.text(82, 45, screen.word("names"), 15, ink, bold=True)
    screen.text(82, 63, screen.pick(("online", "last seen today", "typing…", "active now")), 11, ink)
    screen.icon("video", width - 60, 53, 20, ink)
    screen.icon("phone", width - 24, 53, 18, ink)
    y = 94.0
    count = len(texts("replies"))
    replies = screen.sample(texts("replies"), count, count)
    for _ in range(screen.integer(1, 4)):
        y = _bubble(screen, y, replies.pop(), mine=screen.happens(0.5)) + 8
    mine, border = screen.happens(0.5), screen.pick((0, 3, 3))
    wide, high = fit(ratio, screen.pick((0.62, 0.7, 0.78)) * width, max(150, screen.height - y - 190))
    left = width - wide - 12 if mine else 12
    if border:
        fill = theme.accent if mine else theme.line
        screen.box(left - border, y - border, wide + 2 * border, high + 2 * border, fill, radius=12)
    screen.photo(left, y, wide, high, radius=10)
    y += high + 12
    while y < screen.height - 110:
        y = _bubble(screen, y, replies.pop(), mine=screen.happens(0.5)) + 8
    screen.box(0, screen.height - 54, width, 54, theme.card)
    screen.icon("plus", 24, screen.height - 28, 18, theme.accent)
    screen.box(46, screen.height - 44, width - 100, 34, theme.page, radius=17, outline=theme.line)
    screen.text(62, screen.height - 27, "Message", 13, theme.faint)
    screen.icon(screen.pick(("send", "camera")), width - 28, screen.height - 27, 20, theme.accent)
    return screen


def _bubble(screen: Canvas, top: float, text: str, *, mine: bool) -> float:
    """Draw one message. Returns the y where it ends."""
    theme = screen.theme
    high, wide = 32, min(7.2 * len(text) + 30, screen.width - 60)
    left = screen.width - wide - 12 if mine else 12
    screen.box(left, top, wide, high, theme.accent if mine else theme.line, radius=14)
    screen.text(left + wide / 2, top + high / 2, text, 13, "#ffffff" if mine else theme.ink, anchor="mm")
    return top + high


def viewer(rng: np.random.Generator, ratio: float) -> Canvas:
    """The photo alone, as large as possible, with the controls of a gallery or a story."""
    screen = _phone(rng, dark_share=0.8)
    theme, width, height = screen.theme, screen.width, screen.height
    if screen.happens(0.4):  # a story
        count = screen.integer(1, 7)
        for number in range(count):
            screen.box(8 + number * (width - 16) / count, 30, (width - 16) / count - 4, 2, theme.faint)
        screen.avatar(30, 56, 16)
        screen.text(54, 56, f"{screen.word('handles')}  {screen.word('when')}", 13, bold=True)
        screen.icon("close", width - 24, 56, 16)
        bottom = height - 60
        screen.box(14, height - 48, width - 110, 36, theme.page, radius=18, outline=theme.faint)
        screen.text(30, height - 30, "Send message", 13, theme.faint)
        screen.icons(("heart", "send"), width - 90, width - 6, height - 30, 22)
    else:
        screen.icon("arrow", 24, 52, 18)
        screen.text(width / 2, 46, screen.word("when"), 14, bold=True, anchor="mm")
        screen.text(width / 2, 62, screen.clock(), 11, theme.faint, anchor="mm")
        screen.icon("more", width - 24, 52, 18)
        bottom = height - 62
        if screen.happens(0.5):  # other photos
            for number in range(width // 34 + 1):
                screen.tile(34 * number + 2, bottom - 44, 30, 40)
            bottom -= 52
        screen.icons(("share", "heart", "edit", "trash"), 0, width, height - 32, 22)
    wide, high = fit(ratio, width, bottom - 84)
    screen.photo((width - wide) / 2, 78 + (bottom - 84 - high) / 2, wide, high)
    return screen


def browser(rng: np.random.Generator, ratio: float) -> Canvas:
    """A news page or a blog in a phone's browser."""
    screen = _phone(rng)
    theme, width, site = screen.theme, screen.width, screen.word("sites")
    at_top = screen.happens(0.5)
    bar = 28 if at_top else screen.height - 48
    y = 78.0 if at_top else 34.0
    screen.box(0, y, width, 40, screen.pick((theme.card, theme.accent)))
    screen.text(width / 2, y + 20, site.split(".")[0].upper(), 17, bold=True, anchor="mm")
    screen.icon("menu", 22, y + 20, 17)
    y += 52
    if screen.happens(0.5):
        screen.text(16, y + 6, screen.word("sections").upper(), 10, theme.accent, bold=True)
        y += 20
    before = screen.happens(0.6)
    if before:
        y = screen.paragraph(16, y, width - 32, screen.word("headlines"), 22) + 8
        screen.text(16, y + 4, f"By {screen.word('names')} · {screen.word('when')}", 11, theme.faint)
        y += 22
    if screen.happens(0.4):
        y = screen.paragraph(16, y, width - 32, screen.sentences(1, 2), 14, theme.faint) + 10
    inset = screen.pick((0, 16))
    wide, high = fit(ratio, width - 2 * inset, 0.5 * screen.height)
    screen.photo((width - wide) / 2, y, wide, high)
    y += high + 8
    screen.text(16, y + 4, f"Photo: {screen.word('names')}", 9, theme.faint)
    y += 20
    if not before:
        y = screen.paragraph(16, y, width - 32, screen.word("headlines"), 22) + 10
    while y < screen.height:
        y = screen.paragraph(16, y, width - 32, screen.sentences(2, 4), 14) + 12
    screen.box(0, bar - 4, width, 52, theme.card)
    screen.box(12, bar, width - 60, 36, theme.line, radius=16)
    screen.icon("lock", 30, bar + 18, 11, theme.faint)
    screen.text(44, bar + 18, site, 13)
    screen.icon(screen.pick(("reload", "more", "grid")), width - 24, bar + 18, 18)
    return screen
