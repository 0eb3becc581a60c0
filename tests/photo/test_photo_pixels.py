"""Photo.pixels() and apply_changes()."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from photo_files import changed_photo, exif, lossless, noise, opened, saved, scene, wide_gamut
from PIL import Image, ImageCms, ImageOps

from homing.errors import PhotoError
from homing.photo import Photo


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(
    ("format", "mode"),
    [*((format, "RGB") for format in ("JPEG", "PNG", "WEBP", "TIFF", "AVIF")), ("PNG", "P"), ("TIFF", "P")],
)
def test_pixels_are_upright(orientation, format, mode):
    data = saved(scene(), format, mode, exif=exif(orientation))
    image = opened(data)
    image.load()  # Pillow already turns TIFF upright here
    expected = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    photo = Photo.decode(data, "a")
    assert photo.orientation == orientation
    assert photo.stored_pixels.shape == (96, 128, 3)
    np.testing.assert_allclose(photo.pixels().permute(1, 2, 0), expected / 255, atol=1e-6)


def test_pixels_composites_on_white():
    array = noise(40, 50, 4)
    white = Image.new("RGBA", (50, 40), "white")
    white.alpha_composite(Image.fromarray(array))
    pixels = Photo.decode(saved(array, "PNG"), "a").pixels().permute(1, 2, 0)
    np.testing.assert_allclose(pixels, np.asarray(white.convert("RGB")) / 255, atol=1 / 255)


def test_pixels_applies_the_profile():
    data = saved(scene(), "PNG", icc_profile=wide_gamut())
    profile = ImageCms.ImageCmsProfile(BytesIO(wide_gamut()))
    expected = ImageCms.profileToProfile(opened(data), profile, ImageCms.createProfile("sRGB"))
    photo = Photo.decode(data, "a")
    np.testing.assert_allclose(photo.pixels().permute(1, 2, 0), np.asarray(expected) / 255, atol=1e-6)
    assert np.abs(photo.pixels().permute(1, 2, 0).numpy() - photo.stored_pixels / 255).mean() > 0.05


def test_broken_profile_is_ignored_with_one_warning(caplog):
    data = saved(scene(), "PNG", icc_profile=b"not a profile" * 20)
    with caplog.at_level(logging.WARNING, logger="homing"):
        photo = Photo.decode(data, "broken.png")
        np.testing.assert_allclose(photo.pixels().permute(1, 2, 0), scene() / 255, atol=1e-6)
        changed_photo(photo, torch.zeros(3, 96, 128)).pixels()
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["broken.png"]
    assert opened(photo.encode()).info["icc_profile"] == b"not a profile" * 20


@settings(deadline=None)
@given(
    dtype=st.sampled_from([np.uint8, np.uint16]),
    channels=st.integers(1, 4),
    orientation=st.integers(1, 8),
    strength=st.floats(0, 0.2),
    seed=st.integers(0, 1000),
)
def test_changed_photos_stay_within_the_change(dtype, channels, orientation, strength, seed):
    array = noise(33, 40, channels, dtype=dtype, seed=seed)
    photo = dataclasses.replace(Photo.decode(lossless(array, "PNG"), "a"), orientation=orientation)
    change = (torch.rand(photo.pixels().shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1) * strength
    changed = changed_photo(photo, change)
    white = np.iinfo(dtype).max
    difference = dataclasses.replace(
        changed, stored_pixels=np.abs(changed.stored_pixels.astype(int) - photo.stored_pixels).astype(dtype), alpha=None
    )
    bound = change.abs() if channels > 2 else change.mean(0, keepdim=True).abs()
    assert (difference.pixels() <= bound + (0.5 + 1e-2) / white).all()
    np.testing.assert_array_equal(
        np.dstack([photo.stored_pixels, *([] if photo.alpha is None else [photo.alpha])]), array
    )
    assert changed.alpha is photo.alpha


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_change_follows_the_orientation(orientation):
    photo = Photo.decode(saved(np.full((40, 50, 3), 100, np.uint8), "PNG", exif=exif(orientation)), "a")
    change = torch.zeros_like(photo.pixels())
    change[0, 2, 5] = 10 / 255
    seen = changed_photo(photo, change).pixels() - photo.pixels()
    np.testing.assert_allclose(seen, change, atol=1e-6)


def test_a_change_of_another_shape_is_refused():
    photo = Photo.decode(saved(scene(), "PNG"), "a.png")
    with pytest.raises(PhotoError, match=r"^a\.png: a change of \(3, 96, 128\) is expected, got \(3, 128, 96\)$"):
        changed_photo(photo, torch.zeros(3, 128, 96))


def test_photo_cannot_be_changed_in_place():
    photo = Photo.decode(lossless(noise(40, 40, 4), "PNG"), "a")
    for array in (photo.stored_pixels, photo.alpha, changed_photo(photo, torch.zeros(3, 40, 40)).stored_pixels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_sha256_is_the_hash_of_the_file():
    data = saved(scene(), "PNG")
    assert Photo.decode(data, "a").sha256 == hashlib.sha256(data).hexdigest()


def test_decoding_and_encoding_are_thread_safe():
    files = [saved(scene(), format, icc_profile=wide_gamut()) for format in ("JPEG", "PNG", "WEBP", "TIFF")] * 4
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda data: Photo.decode(data, "a").encode(), files))
    assert together == [Photo.decode(data, "a").encode() for data in files]
