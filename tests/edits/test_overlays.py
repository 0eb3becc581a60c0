"""What is put on the photo or around it, and that the photo itself is still there."""

import numpy as np
import pytest
from PIL import Image

from homing.edits import parse
from homing.edits._text import CAPTIONS, load_font, wrap

GREEN = (10, 120, 60)


@pytest.fixture
def photo() -> Image.Image:
    return Image.new("RGB", (400, 300), GREEN)


def changed(before: Image.Image, after: Image.Image) -> np.ndarray:
    return (np.asarray(before) != np.asarray(after)).any(axis=2)


def test_meme_puts_black_words_on_a_white_bar(photo):
    result = np.asarray(parse("meme")(photo))
    bar = result[:-300]
    assert np.array_equal(result[-300:], photo)
    assert 30 < len(bar) < 150
    assert 0.02 < (bar < 64).mean() < 0.4 and (bar > 192).mean() > 0.5
    # The words keep clear of the rim.
    assert all((rim == 255).all() for rim in (bar[:3], bar[-3:], bar[:, :3], bar[:, -3:]))


@pytest.mark.parametrize("seed", range(4))
def test_screenshot_keeps_the_photo_inside(photo, seed):
    result = parse("screenshot")(photo, seed=seed)
    unit = 300 // 16
    assert result.crop((unit, 3 * unit, unit + 400, 3 * unit + 300)) == photo
    assert result.height > 300 + 5 * unit


def test_text_stays_inside_and_scales(photo):
    small, large = (changed(photo, parse(f"text-{size}")(photo, seed=3)) for size in (0.05, 0.2))
    assert 0 < small.mean() < large.mean() < 0.3


def test_emoji_covers_a_disc_of_that_size(photo):
    for seed in range(5):
        mask = changed(photo, parse("emoji-0.6")(photo, seed=seed))
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        assert np.ptp(rows) == pytest.approx(180, abs=10) and np.ptp(columns) == pytest.approx(180, abs=10)
        assert mask.sum() == pytest.approx(np.pi * 90**2, rel=0.1)


@pytest.mark.parametrize("width", [60, 200, 2000])
def test_wrapped_lines_fit_and_lose_no_word(width):
    font = load_font(20)
    for caption in CAPTIONS:
        lines = wrap(caption, font, width)
        assert " ".join(lines) == " ".join(caption.split())
        assert all(font.getlength(line) <= width or " " not in line for line in lines)
