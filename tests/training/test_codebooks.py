"""Training a codebook on few photos and many crops of them."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from homing.errors import CodebookError
from homing.extractors import NetworkExtractor, describe_images
from homing.photo import Photo
from homing.training.codebooks import train_codebook

TINY = NetworkExtractor(
    nn.Sequential(nn.Conv2d(3, 8, 5, stride=4), nn.AdaptiveAvgPool2d(2)), name="tiny", size=64, device="cpu"
)


def test_crops_make_up_for_few_photos(photos: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jpg"
    bad.write_text("hello")
    calls = []
    trained = train_codebook(
        [*sorted(photos.iterdir()), bad],
        spec="IVF4,PQ8x4",
        extractor=TINY,
        name="mine",
        descriptors=350,
        report=lambda: calls.append(1),
    )
    trained.codebook.check(TINY)
    assert (trained.descriptors, trained.photos) == (
        280,
        4,
    )  # descriptors of the unreadable fifth photo are not replaced
    assert 1 / trained.codebook.null_distribution.code.shares[0] == pytest.approx(4 * 3)
    assert len(calls) == 5
    assert [str(bad) in str(failure) for failure in trained.failures] == [True]
    assert trained.codebook.reconstruct(TINY(torch.rand(2, 3, 64, 64))).shape == (2, TINY.dim)


def test_too_few_photos_are_refused_before_describing(photos: Path) -> None:
    for count in (None, 255):
        with pytest.raises(CodebookError, match="needs at least 256 training descriptors"):
            train_codebook(
                [photos / "camera.png"], spec="PQ8x4", extractor=TINY, name="x", descriptors=count, report=int
            )


def test_too_few_readable_photos_are_refused(photos: Path, tmp_path: Path) -> None:
    paths = sorted(photos.iterdir())
    for number in range(300):
        paths.append(tmp_path / f"{number}.jpg")
        paths[-1].write_text("hello")
    line = (
        "PQ8x4 needs at least 256 training descriptors, got 4; "
        "give it more photos, or more crops of them with --descriptors"
    )
    with pytest.raises(CodebookError) as raised:
        train_codebook(paths, spec="PQ8x4", extractor=TINY, name="x", report=int)
    assert str(raised.value) == line


def test_without_readable_photos_the_error_gives_the_reason(tmp_path: Path) -> None:
    (tmp_path / "bad.jpg").write_text("hello")
    with pytest.raises(CodebookError, match=r"none of the 1 photos can be read; the first error: .*bad\.jpg"):
        train_codebook([tmp_path / "bad.jpg"], spec="PQ8x4", extractor=TINY, name="x", descriptors=300, report=int)


def test_the_null_distribution_excludes_crops_of_one_photo(tmp_path: Path) -> None:
    """Plain colors: crops of one are equal, those of two are not."""
    paths = []
    for number, color in enumerate(np.random.default_rng(0).integers(0, 256, (8, 3))):
        paths.append(tmp_path / f"{number}.png")
        Image.new("RGB", (64, 64), tuple(map(int, color))).save(paths[-1])
    rows = describe_images(TINY, [Photo.load(path).pixels() for path in paths])
    apart = np.mean([float((one - other).norm()) for one, other in combinations(rows, 2)])
    trained = train_codebook(paths, spec="PQ8x4", extractor=TINY, name="x", descriptors=320, report=int)
    known = trained.codebook.null_distribution.descriptor
    assert known.distances[0] == pytest.approx(min(float((a - b).norm()) for a, b in combinations(rows, 2)), rel=0.1)
    assert 0.7 * apart < np.interp(0.5, known.shares, known.distances) < 1.3 * apart
