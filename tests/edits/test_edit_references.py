"""Edits compared with independent versions: torchvision, SciPy, Pillow and NumPy."""

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter
from skimage import data
from torchvision.transforms.v2 import functional as torchvision

from homing.edits import parse


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    return Image.fromarray(data.astronaut()).resize((320, 240))


def pixels(image: Image.Image) -> np.ndarray:
    return np.asarray(image, dtype=np.float64)


@pytest.mark.parametrize("strength", [0.0, 0.5, 0.9, 1.3, 2.0])
@pytest.mark.parametrize("name", ["contrast", "brightness", "saturation"])
def test_color_factors_equal_torchvision(photo, name, strength):
    reference = getattr(torchvision, f"adjust_{name}")(photo, strength)
    assert parse(f"{name}-{strength}")(photo) == reference


@pytest.mark.parametrize("strength", [-0.5, -0.31, -0.1, 0.2, 0.5])
def test_hue_equals_torchvision(photo, strength):
    assert parse(f"hue-{strength}")(photo) == torchvision.adjust_hue(photo, strength)


@pytest.mark.parametrize("strength", [0.5, 2.0])
def test_contrast_moves_away_from_the_mean_gray(photo, strength):
    values = pixels(photo)
    gray = np.rint((values @ [0.299, 0.587, 0.114]).mean())
    reference = np.clip(gray + strength * (values - gray), 0, 255)
    assert np.abs(pixels(parse(f"contrast-{strength}")(photo)) - reference).max() <= 1.01


@pytest.mark.parametrize(("sigma", "kernel"), [(0.8, 3), (2.0, 11), (4.7, 29)])
def test_blur_equals_torchvision_with_the_papers_kernel(photo, sigma, kernel):
    reference = torchvision.gaussian_blur(photo, [kernel, kernel], [sigma, sigma])
    assert np.abs(pixels(parse(f"blur-{sigma}")(photo)) - pixels(reference)).max() <= 1


@pytest.mark.parametrize("sigma", [5e-324, 1e-30, 0.1])
def test_a_tiny_blur_changes_nothing(photo, sigma):
    assert parse(f"blur-{sigma}")(photo) == photo


def test_blur_is_close_to_scipys_gaussian(photo):
    reference = gaussian_filter(pixels(photo), (7.0, 7.0, 0.0), mode="mirror")
    difference = np.abs(pixels(parse("blur-7.0")(photo)) - reference)
    assert difference.mean() < 0.7 and difference.max() < 8


def test_jpeg_equals_a_saved_file(photo, tmp_path):
    photo.save(tmp_path / "photo.jpg", quality=50)
    with Image.open(tmp_path / "photo.jpg") as reference:
        assert np.array_equal(parse("jpeg-50")(photo), reference)


@pytest.mark.parametrize("colors", [2, 7, 16, 256])
def test_palette_has_as_many_colors(photo, colors):
    result = parse(f"palette-{colors}")(photo)
    assert 2 <= len(result.getcolors(maxcolors=10**6)) <= colors


def test_grayscale_has_equal_channels(photo):
    red, green, blue = parse("grayscale")(photo).split()
    assert red == green == blue == photo.convert("L")


def test_edges_get_sharper(photo):
    def steepness(image):
        return np.abs(np.diff(pixels(image), axis=1)).mean()

    assert steepness(parse("edges")(photo)) > 1.5 * steepness(photo)


def test_pixelate_paints_means_of_blocks(photo):
    blocks = pixels(photo).reshape(60, 4, 80, 4, 3).mean(axis=(1, 3))
    result = pixels(parse("pixelate-0.25")(photo))
    assert np.abs(result - blocks.repeat(4, axis=0).repeat(4, axis=1)).max() <= 1


def test_shuffle_moves_the_given_fraction_and_keeps_all_pixels():
    pixel = np.arange(100 * 80, dtype=np.uint32)
    image = Image.fromarray(
        np.stack([pixel % 256, pixel // 256, pixel * 0], axis=1).astype(np.uint8).reshape(80, 100, 3)
    )
    before, after = (np.asarray(each).reshape(-1, 3) for each in (image, parse("shuffle-0.2")(image)))
    assert (before != after).any(axis=1).mean() == pytest.approx(0.2, abs=0.01)
    assert np.array_equal(np.unique(before, axis=0), np.unique(after, axis=0))


@pytest.mark.parametrize("quarters", [-1, 1, 2])
def test_quarter_turns_are_exact(photo, quarters):
    assert np.array_equal(parse(f"rotation-{90 * quarters}")(photo), np.rot90(photo, quarters))


def test_rotation_equals_torchvision(photo):
    bilinear = torchvision.InterpolationMode.BILINEAR
    assert parse("rotation-25")(photo) == torchvision.rotate(photo, 25, bilinear, expand=True)


@pytest.mark.parametrize("area", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", ["crop", "resize"])
def test_crop_and_resize_keep_the_given_area(photo, name, area):
    width, height = parse(f"{name}-{area}")(photo).size
    assert width * height / (photo.width * photo.height) == pytest.approx(area, rel=0.01)
    assert width / height == pytest.approx(photo.width / photo.height, rel=0.02)


def test_crop_takes_the_center(photo):
    assert np.array_equal(parse("crop-0.25")(photo), np.asarray(photo)[60:180, 80:240])


def test_resize_equals_torchvision(photo):
    assert parse("resize-0.25")(photo) == torchvision.resize(photo, [120, 160])


def test_fragment_is_found_in_the_photo():
    column, row = np.meshgrid(np.arange(250), np.arange(200))
    image = Image.fromarray(np.stack([column, row, 0 * row], axis=2).astype(np.uint8))
    positions = set()
    for seed in range(20):
        part = np.asarray(parse("part-0.4")(image, seed=seed))
        left, top, _ = part[0, 0].tolist()
        assert part.shape == (80, 100, 3)
        assert np.array_equal(part, np.asarray(image)[top : top + 80, left : left + 100])
        positions.add((left, top))
    assert len(positions) > 10


def test_flip_mirrors(photo):
    assert np.array_equal(parse("flip")(photo), np.asarray(photo)[:, ::-1])


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
def test_aspect_changes_the_ratio_and_keeps_the_area(photo, ratio):
    width, height = parse(f"aspect-{ratio}")(photo).size
    assert width / height == pytest.approx(ratio, rel=0.02)
    assert width * height == pytest.approx(photo.width * photo.height, rel=0.02)


def test_pad_keeps_the_photo_between_black_bars(photo):
    result = np.asarray(parse("pad")(photo))
    assert result.shape == (320, 320, 3)
    assert np.array_equal(result[40:280], photo)
    assert not result[:40].any() and not result[280:].any()


def test_perspective_grows_with_strength(photo):
    white = Image.new("RGB", photo.size, "white")

    def left_black(strength):
        edit = parse(f"perspective-{strength}")
        return np.mean([(pixels(edit(white, seed=seed)) < 128).mean() for seed in range(20)])

    assert 0 < left_black(10) < left_black(50) < 0.3
