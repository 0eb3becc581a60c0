"""Copies laid over their originals, by edits whose geometry is known."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageOps

from homing.evaluation.alignment import align


@pytest.fixture(scope="module")
def flower(photos: Path) -> Image.Image:
    image = Image.open(photos / "flower.jpg").convert("RGB")
    image.thumbnail((420, 420))
    return image


def apart(query: Image.Image, laid: Image.Image, inside: np.ndarray) -> float:
    """The mean difference of what is laid over each other, of 255."""
    return float(np.abs(np.asarray(query, float) - np.asarray(laid, float))[inside].mean())


def test_a_crop_is_found_where_it_was(flower: Image.Image) -> None:
    left, top, right, bottom = 90, 60, 350, 240
    query = flower.crop((left, top, right, bottom))
    laid = align(query, flower)
    assert laid is not None
    wanted = [(left, top), (right, top), (right, bottom), (left, bottom)]
    np.testing.assert_allclose(laid.frame, wanted, atol=1.5)
    assert laid.inside.mean() > 0.98
    assert apart(query, laid.picture, laid.inside) < 4


@pytest.mark.parametrize(
    "edit",
    [
        lambda image: image.rotate(25, Image.Resampling.BICUBIC, expand=True),
        ImageOps.mirror,
        lambda image: image.resize((image.width * 2 // 3, image.height // 2)),
    ],
    ids=["rotation", "mirror", "stretch"],
)
def test_turned_mirrored_and_stretched_copies_are_laid_over(flower: Image.Image, edit) -> None:
    query = edit(flower)
    laid = align(query, flower)
    assert laid is not None
    assert laid.picture.size == query.size
    assert laid.inside.mean() > 0.5  # the corners that a turn adds are of no photo
    assert apart(query, laid.picture, laid.inside) < 8


def test_a_caption_is_what_differs(flower: Image.Image) -> None:
    query = Image.new("RGB", (flower.width, flower.height + 60), "white")
    query.paste(flower, (0, 60))
    ImageDraw.Draw(query).rectangle((100, 150, 200, 180), fill="black")
    laid = align(query, flower)
    assert laid is not None
    assert not laid.inside[:55].any()
    box = np.zeros_like(laid.inside)
    box[150:181, 100:201] = True
    assert apart(query, laid.picture, laid.inside & box) > 5 * apart(query, laid.picture, laid.inside & ~box)


def test_what_does_not_agree_is_not_laid_over(flower: Image.Image, photos: Path) -> None:
    other = Image.open(photos / "chelsea.png").convert("RGB")
    assert align(other, flower) is None
    assert align(Image.new("RGB", (200, 200), "grey"), flower) is None
