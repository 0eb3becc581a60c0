"""Graphics of few colors are distinguished from photos."""

from __future__ import annotations

import numpy as np
import pytest
import skimage.data
from PIL import Image, ImageDraw, ImageFont
from sklearn.datasets import load_sample_images
from tests.photo.photo_files import CAMERA, saved, scene

from homing.photo import Photo, graphic_kind


def _page(size: tuple[int, int] = (600, 400)) -> Image.Image:
    """A screenshot of antialiased text."""
    image = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(image)
    for row in range(12):
        pen.text(
            (20, 20 + 30 * row), "How vexingly quick daft zebras jump", (20, 40, 20 * row), ImageFont.load_default(20)
        )
    return image


def _kind(array: np.ndarray, format: str = "PNG", mode: str | None = None, **settings: object) -> str | None:
    return graphic_kind(Photo.decode(saved(array, format, mode, **settings), "a"))


def _photos() -> dict[str, np.ndarray]:
    names = ("astronaut", "brick", "camera", "cat", "coffee", "coins", "grass", "gravel", "hubble_deep_field", "moon")
    found = {name: getattr(skimage.data, name)() for name in (*names, "immunohistochemistry", "page", "rocket", "text")}
    return found | {f"sample{number}": image for number, image in enumerate(load_sample_images().images)}


@pytest.mark.parametrize(("name", "array"), _photos().items(), ids=_photos())
def test_photos_are_not_graphics(name: str, array: np.ndarray) -> None:
    for mode in ("L", None):
        for format in ("PNG", "JPEG", "BMP"):
            assert _kind(array, format, mode) is None, (name, mode, format)


@pytest.mark.parametrize("path", sorted(CAMERA.parent.rglob("*.jpg")), ids=lambda path: path.stem)
def test_camera_photos_are_not_graphics(path) -> None:
    assert graphic_kind(Photo.load(path)) is None


def test_thumbnails_and_photos_on_white_are_not_graphics() -> None:
    assert _kind(np.asarray(Image.fromarray(skimage.data.astronaut()).resize((32, 32)))) is None
    product = np.full((600, 600, 3), 255, np.uint8)
    product[200:400, 200:400] = skimage.data.astronaut()[:200, :200]
    assert _kind(product) is None
    assert _kind(product, mode="L") is None


@pytest.mark.parametrize("format", ["PNG", "TIFF", "BMP"])
def test_palettes_of_few_colors_are_graphics(format: str) -> None:
    array = skimage.data.astronaut()
    colors = len(np.unique(np.asarray(Image.fromarray(array).convert("P").convert("RGB")).reshape(-1, 3), axis=0))
    assert _kind(array, format, "P") == f"{colors} colors"


@pytest.mark.parametrize("format", ["PNG", "TIFF"])
def test_black_and_white_is_a_graphic(format: str) -> None:
    assert _kind(skimage.data.camera(), format, "1") == "2 colors"


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA"])
def test_antialiased_text_is_a_graphic(mode: str) -> None:
    page = np.asarray(_page())
    assert len(np.unique(page.reshape(-1, 3), axis=0)) > 256, "more colors than a palette has"
    assert _kind(page, mode=mode) == "flat areas"
    assert _kind(page, "WEBP", lossless=True)


def test_hidden_colors_of_transparent_pixels_do_not_count() -> None:
    hidden = np.random.default_rng(0).integers(0, 255, (200, 200, 4), dtype=np.uint8)
    hidden[..., 3] = 0
    hidden[50:150, 50:150] = (200, 30, 30, 255)
    assert _kind(hidden) == "2 colors"


def test_16_bits_are_reduced_to_8_before_counting() -> None:
    levels = np.repeat(scene().astype(np.uint16) * 257, 2, axis=0)
    assert graphic_kind(Photo.decode(saved(scene(), "PNG"), "a")) is None
    few = (levels // 30_000 * 30_000)[..., 0]
    assert graphic_kind(Photo.decode(saved(few, "PNG"), "a")) == f"{len(np.unique(few))} colors"
