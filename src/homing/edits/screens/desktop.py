"""Screens of computers: a page in a browser, a social network, a viewer's window, a gallery, a message."""

from __future__ import annotations

import numpy as np

from homing.edits._assets import texts
from homing.edits.screens.canvas import Canvas, fit

SIZES = ((1024, 640), (1200, 736), (1280, 720), (1280, 800), (1100, 760))


def _browser_bar(screen: Canvas) -> float:
    """Draw tabs and an address. Returns the y where the page begins."""
    theme, site = screen.theme, screen.word("sites")
    screen.box(0, 0, screen.width, 34, theme.line)
    if screen.happens(0.5):
        _lights(screen, 20, 17)
    x = 84.0
    for number in range(screen.integer(1, 5)):
        if number == 0:
            screen.box(x, 6, 180, 30, theme.card, radius=8)
        screen.disc(x + 16, 19, 6, theme.accent if number == 0 else theme.faint)
        screen.text(x + 28, 19, site if number == 0 else screen.word("sites"), 12)
        screen.icon("close", x + 166, 19, 8, theme.faint)
        x += 186
    screen.box(0, 34, screen.width, 40, theme.card)
    screen.icons(("back", "forward", "reload"), 8, 98, 54, 15)
    screen.box(112, 40, screen.width - 240, 28, theme.page, radius=14, outline=theme.line)
    screen.icon("lock", 130, 54, 10, theme.faint)
    screen.text(142, 54, f"{site}/{screen.word('sections').lower()}/{screen.integer(0, 100_000)}", 12)
    screen.icons(("star", "download", "more"), screen.width - 112, screen.width - 8, 54, 16)
    screen.box(0, 74, screen.width, 1, theme.line)
    return 75


def _lights(screen: Canvas, x: float, y: float) -> None:
    for number, color in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        screen.disc(x + 19 * number, y, 5.5, color)


def article(rng: np.random.Generator, ratio: float) -> Canvas:
    """An article in a browser, with the photo between headline and text."""
    screen = Canvas(rng, SIZES)
    theme = screen.theme
    top = _browser_bar(screen)
    band = screen.pick((theme.accent, theme.card))
    screen.box(0, top, screen.width, 52, band)
    ink = "#ffffff" if band == theme.accent else theme.ink
    column = screen.pick((0.44, 0.52, 0.6)) * screen.width
    left = screen.pick((0.08, 0.16)) * screen.width
    screen.text(left, top + 26, screen.word("sites").split(".")[0].title(), 22, ink, bold=True)
    for number, section in enumerate(screen.sample(texts("sections"), 3, 6)):
        screen.text(left + 210 + 84 * number, top + 26, section, 13, ink)
    y = screen.paragraph(left, top + 74, column, screen.word("headlines"), screen.pick((24, 30)))
    screen.text(left, y + 8, f"{screen.word('names')}  |  {screen.word('when')}", 12, theme.faint)
    y += 26
    if screen.happens(0.4):
        y = screen.paragraph(left, y, column, screen.sentences(1, 2), 15, theme.faint) + 10
    wide, high = fit(ratio, column, screen.height - y - screen.pick((20, 70, 140)))
    screen.photo(left + screen.pick((0, (column - wide) / 2)), y, wide, high)
    y += high + 8
    screen.text(left, y + 6, f"{screen.word('sentences')} Photo: {screen.word('names')}", 11, theme.faint)
    screen.paragraph(left, y + 22, column, screen.sentences(4, 7), 15)
    aside = left + column + 48
    space = screen.width - aside - 40
    if space < 200:
        return screen
    screen.text(aside, top + 90, screen.pick(("Most read", "Related", "Latest", "Sponsored")), 15, bold=True)
    for number, headline in enumerate(screen.sample(texts("headlines"), 4, 9)):
        y = top + 110 + 82 * number
        screen.tile(aside, y, 84, 58)
        screen.paragraph(aside + 96, y, space - 96, headline, 12)
    return screen


def network(rng: np.random.Generator, ratio: float) -> Canvas:
    """The page of a social network: menus at the left, posts in the middle, people at the right."""
    screen = Canvas(rng, SIZES)
    theme, width, height = screen.theme, screen.width, screen.height
    top = _browser_bar(screen) if screen.happens(0.5) else 0
    screen.box(0, top, width, 52, theme.card)
    screen.text(22, top + 26, screen.word("apps"), 22, theme.accent, bold=True)
    screen.box(150, top + 10, 240, 32, theme.page, radius=16, outline=theme.line)
    screen.icon("search", 170, top + 26, 13, theme.faint)
    screen.text(186, top + 26, "Search", 13, theme.faint)
    screen.icons(("home", "video", "bell", "mail"), width - 280, width - 60, top + 26, 20)
    screen.avatar(width - 32, top + 26, 16)
    side, aside = 0.19 * width, 0.22 * width
    symbols = screen.sample(("home", "person", "picture", "bookmark", "star", "video", "mail", "bell", "grid"), 9, 9)
    for number, page in enumerate(screen.sample(texts("pages"), 5, 9)):
        y = top + 84 + 40 * number
        screen.icon(symbols[number], 36, y, 18)
        screen.text(60, y, page, 14)
    left, column = side + 20, width - side - aside - 60
    y = top + 68.0
    if screen.happens(0.6):
        screen.box(left, y, column, 62, theme.card, radius=8)
        screen.avatar(left + 32, y + 31, 18)
        screen.text(left + 62, y + 31, "What's on your mind?", 14, theme.faint)
        y += 76
    screen.box(left, y, column, height, theme.card, radius=8)
    screen.avatar(left + 32, y + 32, 19)
    screen.text(left + 62, y + 24, screen.word("names"), 14, bold=True)
    screen.text(left + 62, y + 42, screen.word("when"), 11, theme.faint)
    screen.icon("dots", left + column - 28, y + 28, 16, theme.faint)
    y = screen.paragraph(left + 16, y + 62, column - 32, screen.sentences(1, 2), 14) + 8
    wide, high = fit(ratio, column - screen.pick((0, 32)), height - y - screen.pick((16, 60, 100)))
    screen.photo(left + (column - wide) / 2, y, wide, high)
    y += high
    counts = f"{screen.word('counts')} likes  ·  {screen.word('counts')} comments"
    screen.text(left + 16, y + 18, counts, 12, theme.faint)
    for number, (icon, label) in enumerate((("heart", "Like"), ("comment", "Comment"), ("share", "Share"))):
        x = left + (number + 0.4) * column / 3
        screen.icon(icon, x, y + 48, 17, theme.faint)
        screen.text(x + 16, y + 48, label, 13, theme.faint)
    screen.text(width - aside, top + 84, screen.pick(("Contacts", "People you may know", "Trending")), 14, bold=True)
    for number, name in enumerate(screen.sample(texts("names"), 5, 10)):
        y = top + 116 + 46 * number
        screen.avatar(width - aside + 17, y, 16)
        screen.text(width - aside + 44, y, name, 13)
    return screen


def window(rng: np.random.Generator, ratio: float) -> Canvas:
    """An image viewer or editor in a window on a desktop."""
    screen = Canvas(rng, SIZES)
    theme, width, height = screen.theme, screen.width, screen.height
    hue = screen.integer(0, 360)
    screen.box(0, 0, width, height, f"hsl({hue}, 40%, 34%)")  # the wallpaper
    for _ in range(4):
        x, y, radius = screen.uniform(0, width), screen.uniform(0, height), screen.uniform(0.2, 0.6) * height
        screen.disc(x, y, radius, f"hsl({(hue + screen.integer(-30, 30)) % 360}, 45%, {screen.integer(30, 60)}%)")
    bar = screen.pick((height - 40, 0))
    screen.box(0, bar, width, 40 if bar else 26, theme.card)
    if bar:
        screen.icons(("grid", "search", "picture", "mail", "home"), 0.3 * width, 0.55 * width, bar + 20, 18)
    else:
        for number, menu in enumerate(texts("menus")[: screen.integer(5, 9)]):
            screen.text(24 + 70 * number, 13, menu, 12, bold=number == 0)
    screen.text(width - 16, bar + (20 if bar else 13), screen.clock(), 12, anchor="rm")
    for number, folder in enumerate(screen.sample(texts("folders"), 2, 5)):
        screen.box(width - 76, 44 + 84 * number, 44, 44, theme.line, radius=6)
        screen.icon(screen.pick(("picture", "mail", "video")), width - 54, 66 + 84 * number, 22)
        screen.text(width - 54, 98 + 84 * number, folder, 10, "#ffffff", anchor="mm")
    across, down = screen.pick((0.6, 0.7, 0.8)) * width, screen.pick((0.74, 0.8, 0.84)) * height
    left = screen.uniform(0.03, 0.97 - across / width - 0.06) * width
    top = 32 + screen.uniform(0.0, 1.0) * (height - 80 - down)
    screen.box(left - 1, top - 1, across + 2, down + 2, theme.line, radius=9)
    screen.box(left, top, across, down, theme.page, radius=8)
    if screen.happens(0.5):
        _lights(screen, left + 20, top + 16)
    else:
        screen.icons(("minus", "square", "close"), left + across - 96, left + across, top + 16, 11)
    screen.text(left + across / 2, top + 16, screen.word("files"), 13, bold=True, anchor="mm")
    tools = screen.happens(0.5)
    inside = left + (46 if tools else 0)
    if tools:
        screen.box(left, top + 32, 46, down - 40, theme.card)
        for number, icon in enumerate(("edit", "plus", "square", "search", "star", "camera", "trash")):
            screen.icon(icon, left + 23, top + 56 + 38 * number, 17)
    else:
        for number, menu in enumerate(texts("menus")[: screen.integer(3, 8)]):
            screen.text(left + 16 + 64 * number, top + 42, menu, 12)
    foot = screen.pick((0, 28))
    if foot:
        size = f"{screen.word('counts')} KB   {screen.integer(20, 100)} %"
        screen.text(inside + 14, top + down - 14, size, 11, theme.faint)
    space, tall = across - (inside - left) - screen.pick((0, 24, 80)), down - 64 - foot
    wide, high = fit(ratio, space, tall)
    middle = (inside + left + across) / 2
    screen.photo(middle - wide / 2, top + 56 + (tall - high) / 2, wide, high)
    return screen


def gallery(rng: np.random.Generator, ratio: float) -> Canvas:
    """A photo manager that fills the screen: albums at the left, the photo, other photos below."""
    screen = Canvas(rng, SIZES, dark_share=0.7)
    theme, width, height = screen.theme, screen.width, screen.height
    side = screen.pick((0, 170, 210))
    screen.box(0, 0, width, 44, theme.card)
    screen.icon("arrow", 24, 22, 16)
    screen.text(52, 22, screen.word("files"), 14, bold=True)
    screen.icons(("search", "heart", "edit", "share", "trash", "more"), width - 300, width - 8, 22, 17)
    if side:
        screen.box(0, 44, side, height, theme.card)
        for number, folder in enumerate(screen.sample(texts("folders"), 5, 9)):
            if number == 1:
                screen.box(8, 80 + 34 * number, side - 16, 30, theme.line, radius=6)
            screen.icon("picture", 28, 95 + 34 * number, 15, theme.accent)
            screen.text(46, 95 + 34 * number, folder, 13)
    strip = screen.pick((0, 84))
    if strip:
        for number in range((width - side) // 92 + 1):
            screen.tile(side + 4 + 92 * number, height - strip + 6, 86, strip - 14)
    space, tall = width - side - screen.pick((0, 40, 120)), height - 44 - strip - screen.pick((8, 40))
    wide, high = fit(ratio, space, tall)
    middle = (side + width) / 2
    screen.photo(middle - wide / 2, 44 + (height - 44 - strip - high) / 2, wide, high)
    return screen


def message(rng: np.random.Generator, ratio: float) -> Canvas:
    """A mail or a team's chat: folders or channels at the left, the photo in a message."""
    screen = Canvas(rng, SIZES)
    theme, width, height = screen.theme, screen.width, screen.height
    side = screen.pick((220, 280))
    panel, ink = screen.pick(((theme.card, theme.ink), (theme.accent, "#ffffff"), ("#3f2a4f", "#ffffff")))
    screen.box(0, 0, side, height, panel)
    screen.text(20, 30, screen.word("apps"), 20, ink, bold=True)
    for number, channel in enumerate(screen.sample(texts("sections") + texts("pages"), 6, 12)):
        screen.text(26, 76 + 34 * number, f"# {channel.lower()}", 14, ink)
    screen.box(side, 0, width, 56, theme.card)
    screen.text(side + 24, 28, screen.word("sections"), 17, bold=True)
    screen.icons(("person", "search", "more"), width - 140, width - 10, 28, 18)
    screen.box(side, 56, width, 1, theme.line)
    y, left = 76.0, side + 70
    for name in screen.sample(texts("names"), 0, 2):
        screen.avatar(side + 38, y + 18, 18)
        screen.text(left, y + 8, name, 14, bold=True)
        reply = screen.pick(texts("replies") + texts("sentences"))
        y = screen.paragraph(left, y + 20, width - left - 40, reply, 14) + 16
    screen.avatar(side + 38, y + 18, 18)
    long = screen.text(left, y + 8, screen.word("names"), 14, bold=True)
    screen.text(left + long + 10, y + 9, screen.word("when"), 11, theme.faint)
    y = screen.paragraph(left, y + 20, width - left - 40, screen.word("sentences"), 14) + 6
    wide, high = fit(ratio, screen.pick((0.36, 0.5)) * width, height - y - screen.pick((90, 150)))
    screen.photo(left, y, wide, high, radius=screen.pick((0, 6)))
    y += high + 14
    for number in range(screen.integer(0, 4)):
        screen.box(left + 54 * number, y, 48, 24, theme.card, radius=12, outline=theme.line)
        screen.emoji(left + 16 + 54 * number, y + 12, 15)
        screen.text(left + 34 + 54 * number, y + 12, str(screen.integer(1, 30)), 11, anchor="mm")
    screen.box(side + 20, height - 56, width - side - 40, 42, theme.card, radius=8, outline=theme.line)
    prompt = screen.pick(("Write a message…", "Reply to all", "Message #general"))
    screen.text(side + 40, height - 35, prompt, 14, theme.faint)
    return screen
