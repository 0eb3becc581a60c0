"""quick=True writes files with the same pixels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL.JpegImagePlugin import get_sampling
from tests.photo.photo_files import changed_photo, cmyk_profile, lossless, noise, opened, saved, scene, wide_gamut

from homing.photo import SUFFIXES, Photo

FILES = {
    "baseline 4:4:4": saved(scene(), "JPEG", quality=90, subsampling=0),
    "baseline 4:2:0": saved(scene(), "JPEG", quality=75, subsampling=2),
    "progressive 4:2:0": saved(scene(), "JPEG", quality=75, subsampling=2, progressive=True),
    "gray": saved(scene()[..., 0], "JPEG", quality=80),
    "CMYK": saved(scene(), "JPEG", mode="CMYK", quality=90, icc_profile=cmyk_profile()),
    "wide gamut": saved(scene(), "JPEG", quality=85, icc_profile=wide_gamut()),
    "PNG": lossless(scene(), "PNG"),
    "PNG with alpha": lossless(noise(40, 50, 4), "PNG"),
    "PNG of 16 bits": lossless(scene().astype(np.uint16) * 257, "PNG"),
}


@pytest.mark.parametrize("finer", [False, True])
@pytest.mark.parametrize("data", FILES.values(), ids=FILES)
def test_quick_files_have_the_same_pixels(data: bytes, finer: bool) -> None:
    photo = Photo.decode(data, "a")
    height, width = photo.stored_pixels.shape[:2]
    changed = changed_photo(photo, 0.01 * torch.randn(3, height, width, generator=torch.Generator().manual_seed(0)))
    for format in (None, *SUFFIXES):
        quick, careful = (Photo.decode(changed.encode(format, finer, quick=quick), "b") for quick in (True, False))
        np.testing.assert_array_equal(quick.stored_pixels, careful.stored_pixels)
        assert torch.equal(quick.pixels(), careful.pixels())
        assert (quick.alpha is None) == (careful.alpha is None)
        if quick.alpha is not None:
            np.testing.assert_array_equal(quick.alpha, careful.alpha)


def test_careful_files_are_smaller() -> None:
    photo = Photo.decode(FILES["PNG"], "a")
    assert len(photo.encode()) < len(photo.encode(quick=True))


@pytest.mark.parametrize("name", ["baseline 4:4:4", "baseline 4:2:0", "progressive 4:2:0"])
def test_jpeg_huffman_tables_are_optimized(name: str) -> None:
    photo = Photo.decode(FILES[name], "a")
    image = opened(FILES[name])
    plain, small = (
        len(saved(photo.stored_pixels, "JPEG", qtables=image.quantization, subsampling=get_sampling(image), **more))
        for more in ({}, {"optimize": True, "progressive": bool(image.info.get("progressive"))})
    )
    assert len(photo.encode(quick=True)) == small < plain


@pytest.mark.parametrize("shape", [(200, 200, 3), (200, 200)])
def test_a_photo_that_becomes_much_larger_is_written(shape: tuple[int, ...]) -> None:
    """Optimized tables need the whole file in a buffer of two bytes per pixel; color noise does not fit."""
    photo = Photo.decode(saved(np.full(shape, 128, np.uint8), "JPEG", quality=100, subsampling=0), "flat")
    changed = changed_photo(photo, 0.5 * torch.randn(3, 200, 200))
    for finer in (False, True):
        again = Photo.decode(changed.encode(finer=finer), "noise")
        assert np.abs(again.stored_pixels.astype(int) - changed.stored_pixels).max() <= 4
