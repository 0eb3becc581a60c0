"""Training a codebook on few photos and many crops of them."""

from pathlib import Path

import pytest
import torch
from torch import nn

from homing.errors import CodebookError
from homing.extractors import NetworkExtractor
from homing.training.codebooks import train_codebook

TINY = NetworkExtractor(
    nn.Sequential(nn.Conv2d(3, 8, 5, stride=4), nn.AdaptiveAvgPool2d(2)), name="tiny", size=64, device="cpu"
)


def test_crops_make_up_for_few_photos(photos: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jpg"
    bad.write_text("hello")
    moved = []
    book, failures = train_codebook(
        [*sorted(photos.iterdir()), bad],
        spec="IVF4,PQ8x4",
        extractor=TINY,
        name="mine",
        crops=300,
        report=lambda: moved.append(1),
    )
    book.check(TINY)
    assert len(book.unrelated) == 300
    assert len(moved) == 5
    assert [str(bad) in str(failure) for failure in failures] == [True]
    assert book.reconstruct(TINY(torch.rand(2, 3, 64, 64))).shape == (2, TINY.dim)


def test_too_few_are_refused_at_once(photos: Path) -> None:
    for crops in (None, 255):
        with pytest.raises(CodebookError, match="needs at least 256 photos"):
            train_codebook([photos / "camera.png"], spec="PQ8x4", extractor=TINY, name="x", crops=crops, report=int)
