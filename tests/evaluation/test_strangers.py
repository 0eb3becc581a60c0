"""Strangers that are kept: read again where they are whole, made anew where they are not."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from torch import nn

from homing.errors import HomingError
from homing.evaluation.protocol.kept import KeptRows
from homing.evaluation.protocol.strangers import Strangers, find_strangers
from homing.extractors import NetworkExtractor
from homing.photo import Found, gather

NETWORK = nn.Sequential(nn.Conv2d(3, 8, 5, stride=4), nn.AdaptiveAvgPool2d(2))
TINY = NetworkExtractor(NETWORK, name="tiny", size=64, device="cpu")
COUNT = 10  # of five photos, one of which cannot be read
DESCRIBED = 8


@pytest.fixture
def with_bad(photos: Path, tmp_path: Path) -> list[Found]:
    bad = tmp_path / "bad.jpg"
    bad.write_text("hello")
    return gather([photos, bad])


def found(photos: list[Found], folder: Path) -> tuple[Strangers, int]:
    """The strangers, and how many crops the network saw for them."""
    described: list[int] = []
    advanced: list[int] = []
    with NETWORK.register_forward_hook(lambda network, given, made: described.append(len(made))):
        strangers = find_strangers(TINY, photos, COUNT, folder, lambda: advanced.append(1))
    assert len(advanced) == len(photos)
    return strangers, sum(described)


def test_what_cannot_be_read_leaves_no_empty_descriptors(with_bad: list[Found], tmp_path: Path) -> None:
    for described in (DESCRIBED, 0):
        strangers, count = found(with_bad, tmp_path)
        assert count == described
        assert strangers.descriptors.shape == (DESCRIBED, TINY.dim)
        assert np.linalg.norm(strangers.descriptors.astype(np.float32), axis=1).min() > 0.99
        assert strangers.photos == 4
        assert ["bad.jpg" in line for line in strangers.failures] == [True]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _other(path: Path) -> None:
    path.write_text("[1, 2]")


@pytest.mark.parametrize("damage", [Path.unlink, _cut, _empty, _other])
@pytest.mark.parametrize("suffix", [".json", ".npy"])
def test_what_is_damaged_or_missing_is_made_anew(
    with_bad: list[Found], tmp_path: Path, suffix: str, damage: Callable[[Path], None]
) -> None:
    first, _ = found(with_bad, tmp_path)
    expected = np.array(first.descriptors)
    (file,) = tmp_path.glob(f"background-*{suffix}")
    damage(file)
    again, described = found(with_bad, tmp_path)
    assert described == DESCRIBED
    np.testing.assert_array_equal(again.descriptors, expected)
    assert again.failures == first.failures
    assert found(with_bad, tmp_path)[1] == 0


def test_new_rows_are_not_taken_for_those_that_are_gone(tmp_path: Path) -> None:
    file = tmp_path / "rows.npy"
    KeptRows(file, (2, 3), np.float32).add(np.ones((2, 3)), seen=2)
    file.unlink()
    KeptRows(file, (2, 3), np.float32)  # and is interrupted before it adds any
    again = KeptRows(file, (2, 3), np.float32)
    assert (again.count, again.said) == (0, {})


def test_a_photo_that_changed_is_described_anew(photos: Path, with_bad: list[Found], tmp_path: Path) -> None:
    found(with_bad, tmp_path)
    bad = with_bad[-1].path
    bad.write_bytes((photos / "flower.jpg").read_bytes())
    mended, described = found(with_bad, tmp_path)
    assert (described, mended.photos, mended.failures) == (COUNT, 5, [])
    written = bad.stat()
    os.utime(bad, ns=(written.st_atime_ns, written.st_mtime_ns + 1))  # another photo of the same size, say
    assert found(with_bad, tmp_path)[1] == COUNT


def test_a_folder_that_cannot_be_written_is_named(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(HomingError, match=r"cannot write .*background-.*: No such file"):
        found(gather([photos]), tmp_path / "nowhere")
