"""Caching of distractor descriptors."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from torch import nn

from homing.bench.data import CachedArray, DescriptorSet, compute_descriptor_set
from homing.errors import HomingError
from homing.extractors import NetworkExtractor
from homing.photo import LocalPhoto, find_photos

NETWORK = nn.Sequential(nn.Conv2d(3, 8, 5, stride=4), nn.AdaptiveAvgPool2d(2))
TINY = NetworkExtractor(NETWORK, name="tiny", size=64, device="cpu")
COUNT = 10  # of five photos, one of which cannot be read
DESCRIBED = 8


@pytest.fixture
def with_bad(photos: Path, tmp_path: Path) -> list[LocalPhoto]:
    bad = tmp_path / "bad.jpg"
    bad.write_text("hello")
    return find_photos([photos, bad])


def found(photos: list[LocalPhoto], folder: Path) -> tuple[DescriptorSet, int]:
    """The distractors, and the number of crops the network described for them."""
    described: list[int] = []
    advanced: list[int] = []
    with NETWORK.register_forward_hook(lambda network, inputs, outputs: described.append(len(outputs))):
        distractors = compute_descriptor_set(TINY, photos, COUNT, folder, lambda: advanced.append(1))
    assert len(advanced) == len(photos)
    return distractors, sum(described)


def test_unreadable_photos_leave_no_empty_rows(with_bad: list[LocalPhoto], tmp_path: Path) -> None:
    for described in (DESCRIBED, 0):
        distractors, count = found(with_bad, tmp_path)
        assert count == described
        assert distractors.descriptors.shape == (DESCRIBED, TINY.dim)
        assert np.linalg.norm(distractors.descriptors.astype(np.float32), axis=1).min() > 0.99
        assert distractors.photos == 4
        assert ["bad.jpg" in line for line in distractors.failures] == [True]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _other(path: Path) -> None:
    path.write_text("[1, 2]")


@pytest.mark.parametrize("damage", [Path.unlink, _cut, _empty, _other])
@pytest.mark.parametrize("suffix", [".json", ".npy"])
def test_damaged_or_missing_caches_are_computed_again(
    with_bad: list[LocalPhoto], tmp_path: Path, suffix: str, damage: Callable[[Path], None]
) -> None:
    first, _ = found(with_bad, tmp_path)
    expected = np.array(first.descriptors)
    (file,) = tmp_path.glob(f"descriptors-*{suffix}")
    damage(file)
    again, described = found(with_bad, tmp_path)
    assert described == DESCRIBED
    np.testing.assert_array_equal(again.descriptors, expected)
    assert again.failures == first.failures
    assert found(with_bad, tmp_path)[1] == 0


def test_metadata_of_a_lost_array_is_not_used_for_a_new_one(tmp_path: Path) -> None:
    file = tmp_path / "rows.npy"
    CachedArray(file, (2, 3), np.float32).append(np.ones((2, 3)), seen=2)
    file.unlink()
    CachedArray(file, (2, 3), np.float32)  # interrupted before the first row
    again = CachedArray(file, (2, 3), np.float32)
    assert (again.count, again.metadata) == (0, {})


def test_a_changed_photo_is_described_again(photos: Path, with_bad: list[LocalPhoto], tmp_path: Path) -> None:
    found(with_bad, tmp_path)
    bad = with_bad[-1].path
    bad.write_bytes((photos / "flower.jpg").read_bytes())
    repaired, described = found(with_bad, tmp_path)
    assert (described, repaired.photos, repaired.failures) == (COUNT, 5, [])
    written = bad.stat()
    os.utime(bad, ns=(written.st_atime_ns, written.st_mtime_ns + 1))  # as if it were another photo of the same size
    assert found(with_bad, tmp_path)[1] == COUNT


def test_a_folder_that_cannot_be_written_is_named(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(HomingError, match=r"cannot write .*descriptors-.*: No such file"):
        found(find_photos([photos]), tmp_path / "nowhere")
