"""Alignment of copies with their originals, with edits of known geometry."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageOps

from homing.imaging import align


@pytest.fixture(scope="module")
def flower(photos: Path) -> Image.Image:
    image = Image.open(photos / "flower.jpg").convert("RGB")
    image.thumbnail((420, 420))
    return image


def mean_difference(query: Image.Image, alignment: Image.Image, inside: np.ndarray) -> float:
    """The mean difference inside the mask, of 255."""
    return float(np.abs(np.asarray(query, float) - np.asarray(alignment, float))[inside].mean())


def test_a_crop_is_located_in_the_photo(flower: Image.Image) -> None:
    left, top, right, bottom = 90, 60, 350, 240
    query = flower.crop((left, top, right, bottom))
    alignment = align(query, flower)
    assert alignment is not None
    wanted = [(left, top), (right, top), (right, bottom), (left, bottom)]
    np.testing.assert_allclose(alignment.corners, wanted, atol=1.5)
    assert alignment.mask.mean() > 0.98
    assert mean_difference(query, alignment.image, alignment.mask) < 4


@pytest.mark.parametrize(
    "edit",
    [
        lambda image: image.rotate(25, Image.Resampling.BICUBIC, expand=True),
        ImageOps.mirror,
        lambda image: image.resize((image.width * 2 // 3, image.height // 2)),
    ],
    ids=["rotation", "mirror", "stretch"],
)
def test_rotated_mirrored_and_stretched_copies_are_aligned(flower: Image.Image, edit) -> None:
    query = edit(flower)
    alignment = align(query, flower)
    assert alignment is not None
    assert alignment.image.size == query.size
    assert alignment.mask.mean() > 0.5  # without the corners that a rotation adds
    assert mean_difference(query, alignment.image, alignment.mask) < 8


def test_a_caption_above_the_photo_is_the_difference(flower: Image.Image) -> None:
    query = Image.new("RGB", (flower.width, flower.height + 60), "white")
    query.paste(flower, (0, 60))
    ImageDraw.Draw(query).rectangle((100, 150, 200, 180), fill="black")
    alignment = align(query, flower)
    assert alignment is not None
    assert not alignment.mask[:55].any()
    box = np.zeros_like(alignment.mask)
    box[150:181, 100:201] = True
    assert mean_difference(query, alignment.image, alignment.mask & box) > 5 * mean_difference(
        query, alignment.image, alignment.mask & ~box
    )


def test_different_photos_are_not_aligned(flower: Image.Image, photos: Path) -> None:
    other = Image.open(photos / "chelsea.png").convert("RGB")
    assert align(other, flower) is None
    assert align(Image.new("RGB", (200, 200), "gray"), flower) is None
