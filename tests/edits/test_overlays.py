"""What is put on the photo or around it, and that the photo itself is still there."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFont

from homing import _extras
from homing.edits import parse
from homing.edits.meme import CAPTIONS, wrap
from homing.edits.overlay import _assets
from homing.errors import HomingError

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


def test_screenshots_are_of_a_telephone_or_a_computer_and_hold_the_whole_photo(photo):
    results = [parse("screenshot")(photo, seed=seed) for seed in range(12)]
    assert {result.size for result in results} == {(414, 736), (1200, 736)}
    for result in results:
        rows, columns = np.nonzero(np.abs(np.asarray(result).astype(int) - GREEN).max(axis=2) <= 2)
        width, height = np.ptp(columns) + 1, np.ptp(rows) + 1
        assert width / height == pytest.approx(4 / 3, rel=0.02) and width > 300


def test_text_scales(photo):
    small, large = (
        np.mean([changed(photo, parse(f"text-{size}")(photo, seed=seed)).mean() for seed in range(12)])
        for size in (0.1, 0.3)
    )
    assert 0.001 < small < large / 3 < 0.1


@pytest.mark.parametrize("size", [(400, 300), (300, 400)])
def test_emojis_are_that_high_and_inside(size):
    photo = Image.new("RGB", size, GREEN)
    heights, widths = [], []
    for seed in range(30):
        mask = changed(photo, parse("emoji-0.6")(photo, seed=seed))
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        heights.append(np.ptp(rows) + 1)
        widths.append(np.ptp(columns) + 1)
    assert max(heights) == pytest.approx(0.6 * size[1], abs=3) and max(widths) == pytest.approx(0.6 * size[1], abs=3)
    # None is cut off: the narrowest of them is a pen or a flag, not half a face.
    assert min(heights) > 0.3 * size[1] and min(widths) > 0.15 * size[1]


def test_what_augly_carries_is_what_the_docs_say():
    counts = [len(_assets(*found)) for found in (("EMOJI_DIR", "*/*.png"), ("SCREENSHOT_TEMPLATES_DIR", "*.png"))]
    assert counts == [872, 2]
    fonts = _assets("FONTS_DIR", "Noto*.ttf")
    assert len(fonts) > 100 and all(Path(font).with_suffix(".pkl").is_file() for font in fonts)


@pytest.mark.parametrize("size", [(6000, 16), (16, 6000)])
def test_a_screenshot_of_a_very_long_photo_shows_it(size):
    assert (np.abs(np.asarray(parse("screenshot")(Image.new("RGB", size, GREEN))).astype(int) - GREEN) < 3).any()


def test_without_augly_it_says_what_to_do(photo, monkeypatch):
    monkeypatch.setitem(sys.modules, "augly.image", None)
    with pytest.raises(HomingError, match=r"pip install 'homing\[bench\]'"):
        parse("screenshot")(photo)


def test_without_libmagic_it_says_what_is_missing(photo, monkeypatch):
    def nowhere(_):
        raise ImportError("failed to find libmagic.  Check your installation")

    monkeypatch.setattr(_extras, "import_module", nowhere)
    with pytest.raises(HomingError, match=r"failed to find libmagic.*apt-get install libmagic1"):
        parse("screenshot")(photo)


@pytest.mark.parametrize("width", [60, 200, 2000])
def test_wrapped_lines_fit_and_lose_no_word(width):
    font = ImageFont.load_default(size=20)
    for caption in CAPTIONS:
        lines = wrap(caption, font, width)
        assert " ".join(lines) == " ".join(caption.split())
        assert all(font.getlength(line) <= width or " " not in line for line in lines)
