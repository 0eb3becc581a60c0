"""Emoji, text and meme: covered area, size and visibility."""

import numpy as np
import pytest
from PIL import Image, ImageFont

from homing.edits import parse
from homing.edits._assets import texts
from homing.edits.overlay import wrap

GREEN = (10, 120, 60)


@pytest.fixture
def photo() -> Image.Image:
    return Image.new("RGB", (400, 300), GREEN)


def changed(before: Image.Image, after: Image.Image) -> np.ndarray:
    return (np.asarray(before) != np.asarray(after)).any(axis=2)


def test_a_meme_has_black_words_on_a_white_bar(photo):
    result = np.asarray(parse("meme")(photo))
    bar = result[:-300]
    assert np.array_equal(result[-300:], photo)
    assert 30 < len(bar) < 150
    assert 0.02 < (bar < 64).mean() < 0.4 and (bar > 192).mean() > 0.5
    # No letter touches the edge of the bar.
    assert all((edge == 255).all() for edge in (bar[:3], bar[-3:], bar[:, :3], bar[:, -3:]))


@pytest.mark.parametrize("width", [60, 200, 2000])
def test_wrapped_lines_fit_and_keep_every_word(width):
    font = ImageFont.load_default(size=20)
    for caption in texts("captions"):
        lines = wrap(caption, font, width)
        assert " ".join(lines) == " ".join(caption.split())
        assert all(font.getlength(line) <= width or " " not in line for line in lines)


def test_text_scales(photo):
    small, large = (
        np.mean([changed(photo, parse(f"text-{size}")(photo, seed=seed)).mean() for seed in range(40)])
        for size in (0.1, 0.3)
    )
    assert 0.005 < small < large / 3 < 0.1


def test_texts_have_many_colors_and_half_of_them_an_outline(photo):
    colors, outlined = set(), 0
    for seed in range(60):
        result = parse("text-0.3")(photo, seed=seed)
        found = sorted(result.getcolors(maxcolors=400 * 300), reverse=True)
        colors.add(next(color for _, color in found if color != GREEN))
        extreme = sum(count for count, color in found if color in ((0, 0, 0), (255, 255, 255)))
        outlined += extreme > 60
    assert len(colors) > 30
    assert 15 < outlined < 45


@pytest.mark.parametrize("size", [(400, 300), (300, 400)])
def test_emojis_have_the_given_height_and_are_inside(size):
    photo = Image.new("RGB", size, GREEN)
    heights, widths = [], []
    for seed in range(40):
        mask = changed(photo, parse("emoji-0.6")(photo, seed=seed))
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        heights.append(np.ptp(rows) + 1)
        widths.append(np.ptp(columns) + 1)
    side = 0.6 * size[1]
    assert max(heights) == pytest.approx(side, abs=3) and max(widths) == pytest.approx(side, abs=3)
    # Each fills its square in one direction, so none is cut off; sunglasses are the flattest, a statue the narrowest.
    assert all(max(pair) > 0.95 * side for pair in zip(heights, widths, strict=True))
    assert min(heights) > 0.25 * side and min(widths) > 0.25 * side


def test_emojis_are_placed_everywhere_at_many_opacities(photo):
    lefts, tops, strongest = [], [], []
    for seed in range(60):
        result = parse("emoji-0.4")(photo, seed=seed)
        rows, columns = np.nonzero(changed(photo, result))
        lefts.append(columns.min())
        tops.append(rows.min())
        strongest.append(np.abs(np.asarray(result).astype(int) - GREEN).max())
    assert min(lefts) < 30 and max(lefts) > 250 and min(tops) < 20 and max(tops) > 150
    assert max(strongest) > 190 and min(strongest) < 150
