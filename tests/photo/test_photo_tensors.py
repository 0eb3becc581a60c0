"""pixels() and apply_changes() in torch equal NumPy versions bit for bit, on any device."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from tests.photo.photo_files import changed_photo, lossless, noise, saved, wide_gamut

from homing.photo import Photo
from homing.photo._pixels import stored, upright

DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")],
    ),
]


def _photos() -> list[Photo]:
    """8 and 16 bits, gray and color, with and without alpha, with a profile, in all orientations."""
    files = [
        lossless(noise(33, 47, channels, dtype=dtype), "PNG") for channels in (1, 2, 3, 4) for dtype in ("u1", "u2")
    ]
    files.append(saved(noise(40, 50, 3), "PNG", icc_profile=wide_gamut()))
    photos = [Photo.decode(file, "a") for file in files]
    return [dataclasses.replace(photo, orientation=turn) for photo in photos for turn in range(1, 9)]


@pytest.mark.parametrize("device", DEVICES)
def test_pixels_equal_a_numpy_version(device: str) -> None:
    for photo in _photos():
        if photo.icc is None:
            expected = photo.stored_pixels.astype(np.float32) / np.float32(photo._max_level)
            if photo.alpha is not None:
                opacity = photo.alpha[..., None].astype(np.float32) / np.float32(photo._max_level)
                expected = expected * opacity + (1 - opacity)
            oriented = upright(
                np.repeat(expected, 3, axis=2) if expected.shape[2] == 1 else expected, photo.orientation
            )
            np.testing.assert_array_equal(photo.pixels().permute(1, 2, 0), oriented)
        pixels = photo.pixels(torch.device(device))
        assert pixels.is_contiguous()
        assert pixels.device.type == device
        assert torch.equal(pixels.cpu(), photo.pixels())


@pytest.mark.parametrize("device", DEVICES)
def test_changes_equal_a_numpy_version(device: str) -> None:
    for photo in _photos():
        change = 0.1 * torch.randn(photo.pixels().shape)
        step = change.numpy() if photo.stored_pixels.shape[2] == 3 else change.numpy().mean(axis=0, keepdims=True)
        levels = step * photo._max_level + upright(photo.stored_pixels, photo.orientation).transpose(2, 0, 1)
        levels = np.clip(np.rint(levels), 0, photo._max_level).astype(photo.stored_pixels.dtype)
        changed = changed_photo(photo, change.to(device)).stored_pixels
        assert changed.dtype == photo.stored_pixels.dtype
        assert changed.flags.c_contiguous
        np.testing.assert_array_equal(changed, stored(levels.transpose(1, 2, 0), photo.orientation))
