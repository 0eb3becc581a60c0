"""Descriptors of crops: number, content and determinism."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from homing import extractors
from homing.errors import PhotoError
from homing.extractors import Extractor, NetworkExtractor, crops, describe_images
from homing.extractors.crops import MIN_CROP_SIDE, crop_windows, describe_crops
from homing.photo import Photo


@pytest.fixture(scope="module")
def tiny() -> Extractor:
    """A fast network whose descriptors depend on positions in the image."""
    torch.manual_seed(1)
    network = nn.Sequential(nn.Conv2d(3, 8, 5, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4))
    return NetworkExtractor(network, name="tiny", size=64, device="cpu")


@pytest.fixture(scope="module")
def paths(photos: Path) -> list[Path]:
    return sorted(photos.iterdir())


@pytest.fixture(autouse=True)
def in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use single precision, which gives the same figures on every machine."""
    monkeypatch.setattr("homing.extractors.crops.supports_bfloat16", lambda _: False)


def described(extractor: Extractor, paths: list[Path], count: int) -> np.ndarray:
    return np.concatenate(list(describe_crops(extractor, paths, count, lambda _: None)))


def test_every_photo_is_described_without_cropping_first(paths: list[Path]) -> None:
    extractor = extractors.load("homing-1", device="cpu")
    found = described(extractor, paths, 4)
    expected = describe_images(extractor, [Photo.load(path).pixels() for path in paths]).numpy()
    assert ((found * expected).sum(axis=1) > 0.999).all()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)


@pytest.mark.slow
def test_half_precision_is_close_to_single_precision(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    extractor = extractors.load("homing-1", device="cpu")
    single = described(extractor, paths, 12)
    monkeypatch.setattr("homing.extractors.crops.supports_bfloat16", lambda _: True)
    half = described(extractor, paths, 12)
    assert not np.array_equal(single, half)
    assert np.min((single * half).sum(axis=1)) > 0.99
    np.testing.assert_allclose(np.linalg.norm(half, axis=1), 1, rtol=1e-5)


def test_a_large_network_gets_photos_at_its_input_size(tmp_path: Path) -> None:
    """Pixel noise at the network's input size, which a smaller square would blur."""
    from PIL import Image

    noise = np.random.default_rng(0).integers(0, 256, (320, 320, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    torch.manual_seed(1)
    network = nn.Sequential(nn.Conv2d(3, 8, 5, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4))
    large = NetworkExtractor(network, name="large", size=320, device="cpu")
    expected = describe_images(large, [Photo.load(tmp_path / "noise.png").pixels()]).numpy()
    np.testing.assert_allclose(described(large, [tmp_path / "noise.png"], 1), expected, atol=1e-4)


@pytest.mark.parametrize(("count", "shares"), [(1, [1]), (3, [1, 1, 1]), (4, [1] * 4), (10, [3, 3, 2, 2])])
def test_descriptors_are_spread_evenly_over_the_photos(
    tiny: Extractor, paths: list[Path], count: int, shares: list[int]
) -> None:
    reported: list[PhotoError | None] = []
    found = np.concatenate(list(describe_crops(tiny, paths, count, reported.append)))
    assert found.shape == (count, tiny.dim)
    assert reported == [None] * len(shares)
    whole = describe_images(tiny, [Photo.load(path).pixels() for path in paths]).numpy()
    starts = np.cumsum([0, *shares[:-1]])
    for start, expected in zip(starts, whole, strict=False):
        assert np.linalg.norm(found[start] - expected) < 0.1


def test_results_do_not_depend_on_the_batch_size(
    tiny: Extractor, paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = described(tiny, paths, 30)
    monkeypatch.setattr(crops, "PHOTOS_PER_BATCH", 3)
    monkeypatch.setattr(crops, "default_batch_size", lambda extractor: 7)
    np.testing.assert_allclose(described(tiny, paths, 30), found, atol=1e-6)


def test_a_crop_equals_a_resized_slice(tiny: Extractor, tmp_path: Path) -> None:
    """For a photo of SQUARE_SIDE pixels a side, a crop equals slicing and resizing."""
    from PIL import Image

    smooth = np.random.default_rng(0).random((8, 8, 3))
    image = Image.fromarray((255 * smooth).astype(np.uint8)).resize((crops.SQUARE_SIDE,) * 2, Image.Resampling.BICUBIC)
    image.save(tmp_path / "smooth.png")
    found = described(tiny, [tmp_path / "smooth.png"], 5)
    for row, (side, x, y) in zip(found, crop_windows(0, 5), strict=True):
        left, top = ((center - side + 1) / 2 * crops.SQUARE_SIDE for center in (x, y))
        box = (left, top, left + side * crops.SQUARE_SIDE, top + side * crops.SQUARE_SIDE)
        cut = image.resize((64, 64), Image.Resampling.BILINEAR, box=tuple(map(float, box)))
        crop = torch.from_numpy(np.array(cut)).permute(2, 0, 1) / 255
        assert np.linalg.norm(row - describe_images(tiny, [crop])[0].numpy()) < 0.02


def test_crop_windows_are_inside_the_photo_and_deterministic() -> None:
    windows = crop_windows(3, 500)
    sides, centers = windows[:, :1], windows[:, 1:]
    assert windows[0].tolist() == [1, 0, 0]
    assert MIN_CROP_SIDE <= sides.min() < MIN_CROP_SIDE + 0.05
    assert sides[1:].max() > 0.95
    assert (np.abs(centers) <= 1 - sides + 1e-6).all()
    np.testing.assert_array_equal(crop_windows(3, 20), windows[:20])
    assert not np.array_equal(crop_windows(4, 500), windows)


@pytest.fixture(params=["first", "last"])
def with_bad(request: pytest.FixtureRequest, paths: list[Path], tmp_path: Path) -> Iterator[list[Path]]:
    bad = tmp_path / "bad.jpg"
    bad.write_text("hello")
    yield [bad, *paths] if request.param == "first" else [*paths, bad]


def test_unreadable_photos_are_reported_and_skipped(tiny: Extractor, with_bad: list[Path]) -> None:
    """Eleven descriptors of five photos: the first photo gives three, the others two."""
    reported: list[PhotoError | None] = []
    found = np.concatenate(list(describe_crops(tiny, with_bad, 11, reported.append)))
    bad = next(position for position, path in enumerate(with_bad) if path.name == "bad.jpg")
    assert len(found) == (8 if bad == 0 else 9)
    assert ["bad.jpg" in str(error) for error in reported] == [position == bad for position in range(5)]
    repaired = [path if path.name != "bad.jpg" else with_bad[2] for path in with_bad]
    all_of_them = described(tiny, repaired, 11)
    np.testing.assert_allclose(found, all_of_them[3:] if bad == 0 else all_of_them[:9], atol=1e-6)


def test_fewer_descriptors_than_photos_use_the_first_photos(tiny: Extractor, with_bad: list[Path]) -> None:
    reported: list[PhotoError | None] = []
    found = np.concatenate(list(describe_crops(tiny, with_bad, 3, reported.append)))
    assert len(reported) == 3
    assert len(found) == 3 - sum(error is not None for error in reported)
    assert list(describe_crops(tiny, [path for path in with_bad if path.name == "bad.jpg"], 3, lambda _: None)) == []
