"""Screenshots: the whole photo in screens of apps, different for every seed."""

import numpy as np
import pytest
from PIL import Image

from homing.edits import parse
from homing.edits._assets import icons
from homing.edits.screens import SCREENS
from homing.edits.screens.canvas import draw_theme

MAGENTA = (255, 0, 255)
SCREENSHOT = parse("screenshot")

every_screen = pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.__name__)


def photo_area(image: Image.Image) -> np.ndarray:
    """The area where a magenta photo is visible."""
    return (np.abs(np.asarray(image).astype(int) - MAGENTA) <= 2).all(axis=2)


@pytest.mark.slow
@every_screen
@pytest.mark.parametrize("size", [(400, 300), (300, 400), (600, 200)])
def test_every_screen_shows_the_whole_photo_in_its_ratio(screen, size):
    for seed in range(12):
        ratio = size[0] / size[1]
        shows = photo_area(screen(np.random.default_rng(seed), ratio).finish(Image.new("RGB", size, MAGENTA)))
        rows, columns = np.nonzero(shows)
        width, height = np.ptp(columns) + 1, np.ptp(rows) + 1
        assert width / height == pytest.approx(ratio, rel=0.03)
        assert width > 90
        assert 0.04 < shows.mean() < 0.9
        assert shows.sum() > 0.97 * width * height  # round corners miss


@every_screen
def test_nothing_covers_the_photo(screen):
    column, row = np.meshgrid(np.linspace(0, 255, 320), np.linspace(0, 255, 240))
    ramp = Image.fromarray(np.stack([column, row, 0 * row], axis=2).astype(np.uint8))
    rng = np.random.default_rng(3)
    canvas = screen(rng, 4 / 3)
    left, top, width, height = canvas.slot
    photo_area = np.asarray(canvas.finish(ramp))[top : top + height, left : left + width]
    expected = np.asarray(ramp.resize((width, height), Image.Resampling.BICUBIC))
    assert np.abs(photo_area.astype(int) - expected)[20:-20, 20:-20].max() <= 4


@every_screen
def test_screens_differ_from_seed_to_seed(screen):
    blank = Image.new("RGB", (40, 30))
    screens = [screen(np.random.default_rng(seed), 4 / 3).finish(blank) for seed in range(16)]
    assert len({image.tobytes() for image in screens}) == 16
    assert len({image.size for image in screens}) >= 3
    levels = [np.asarray(image.convert("L")).mean() for image in screens]
    assert min(levels) < 90 and max(levels) > 110  # dark and light


def test_the_edit_draws_every_kind_of_screen():
    sizes = [SCREENSHOT(Image.new("RGB", (80, 60)), seed=seed).size for seed in range(60)]
    upright = sum(width < height for width, height in sizes)
    assert 15 < upright < 45
    assert len(set(sizes)) >= 8


@pytest.mark.parametrize("size", [(6000, 16), (16, 6000)])
def test_a_screenshot_of_a_very_long_photo_shows_it(size):
    for seed in range(20):
        assert photo_area(SCREENSHOT(Image.new("RGB", size, MAGENTA), seed=seed)).any()


def test_themes_are_light_or_dark_and_have_contrast():
    rng = np.random.default_rng(0)
    themes = [draw_theme(rng) for _ in range(60)]

    def luma(color: str) -> float:
        red, green, blue = (int(color[start : start + 2], 16) for start in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    assert all(abs(luma(theme.ink) - luma(theme.page)) > 180 for theme in themes)
    assert 15 < sum(luma(theme.page) < 128 for theme in themes) < 45
    assert len({(theme.page, theme.accent, theme.font) for theme in themes}) > 40


def test_icons_stay_in_the_unit_square():
    for shapes in icons().values():
        for shape, numbers in shapes:
            if shape in ("ring", "disc"):
                x, y, radius = numbers
                numbers = (x - radius, y - radius, x + radius, y + radius)
            assert all(0 <= number <= 1 for number in numbers)
