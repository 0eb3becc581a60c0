"""CMYK stays CMYK, with its profile, in JPEG and TIFF."""

from __future__ import annotations

from io import BytesIO

import imagecodecs
import numpy as np
import pytest
import tifffile
import torch
from PIL import Image, ImageCms
from tests.photo.photo_files import changed_photo, cmyk_profile, exif, noise, opened, saved, scene, wide_gamut

from homing.photo import Photo


def _inks(black: float = 0.5) -> np.ndarray:
    """A scene as (H, W, 4) amounts of ink; `black` is the share of gray that is printed with black ink."""
    rest = 255 - scene().astype(float)
    share = black * rest.min(axis=2, keepdims=True)
    colors = (rest - share) * 255 / np.maximum(255 - share, 1)
    return np.rint(np.concatenate([colors, share], axis=2)).astype(np.uint8)


def _image(inks: np.ndarray) -> Image.Image:
    return Image.frombytes("CMYK", inks.shape[1::-1], inks.tobytes())


def _jpeg(**settings: object) -> bytes:
    buffer = BytesIO()
    _image(_inks()).save(buffer, "JPEG", quality=90, **settings)
    return buffer.getvalue()


def _ycck() -> bytes:
    """A file as Photoshop writes it: inverted values, and an Adobe segment that says YCCK."""
    return bytes(imagecodecs.jpeg8_encode(255 - _inks(), 90, colorspace="CMYK", outcolorspace="YCCK"))


def _tiff(inks: np.ndarray, **settings: object) -> bytes:
    buffer = BytesIO()
    tifffile.imwrite(buffer, inks, photometric="separated", metadata=None, **settings)
    return buffer.getvalue()


FILES = {
    "JPEG": _jpeg(icc_profile=cmyk_profile(), exif=exif(6)),
    "progressive JPEG": _jpeg(progressive=True),
    "YCCK JPEG": _ycck(),
    "TIFF": _tiff(_inks(), iccprofile=cmyk_profile(), compression="lzw"),
    "TIFF of 16 bits": _tiff(_inks().astype(np.uint16) * 257),
}


def _read(data: bytes) -> np.ndarray:
    """The 8-bit inks of a file, read by Pillow or tifffile."""
    if data[:2] == b"\xff\xd8":
        return np.asarray(opened(data))
    inks = tifffile.imread(BytesIO(data))
    return (inks // 257).astype(np.uint8) if inks.dtype == np.uint16 else inks


@pytest.mark.parametrize("finer", [False, True])
@pytest.mark.parametrize("data", FILES.values(), ids=FILES)
def test_files_stay_cmyk(data: bytes, finer: bool) -> None:
    photo = Photo.decode(data, "a")
    assert photo.stored_pixels.shape[2] == 4
    written = photo.encode(finer=finer)
    assert opened(written).mode == "CMYK"
    assert opened(written).info.get("icc_profile") == opened(data).info.get("icc_profile")
    assert opened(written).info.get("adobe_transform") == opened(data).info.get("adobe_transform")
    assert np.abs(_read(data).astype(int) - _inks()).mean() < 8
    assert np.abs(_read(written).astype(int) - _read(data)).mean() < 2, "no ink is inverted"
    again = Photo.decode(written, "b")
    assert again.stored_pixels.dtype == photo.stored_pixels.dtype
    assert (again.orientation, again.icc) == (photo.orientation, photo.icc)
    assert (again.pixels() - photo.pixels()).abs().mean() < 0.01


@pytest.mark.parametrize("data", [FILES["JPEG"], FILES["YCCK JPEG"]], ids=["CMYK", "YCCK"])
def test_jpeg_files_keep_their_tables(data: bytes) -> None:
    before, after = opened(data), opened(Photo.decode(data, "a").encode())
    tables = [[image.quantization[layer[3]] for layer in image.layer] for image in (before, after)]
    assert tables[0] == tables[1]
    # Pillow gives all four components the same Huffman tables.
    assert len(Photo.decode(data, "a").encode()) == pytest.approx(len(data), rel=0.25)


def test_pixels_applies_the_cmyk_profile() -> None:
    photo = Photo.decode(FILES["TIFF"], "a")
    profile = ImageCms.ImageCmsProfile(BytesIO(cmyk_profile()))
    expected = ImageCms.profileToProfile(_image(_inks()), profile, ImageCms.createProfile("sRGB"), outputMode="RGB")
    np.testing.assert_allclose(photo.pixels().permute(1, 2, 0), np.asarray(expected) / 255, atol=1e-6)


def test_pixels_without_a_profile_uses_pillows_conversion() -> None:
    photo = Photo.decode(_tiff(_inks()), "a")
    expected = np.asarray(_image(_inks()).convert("RGB")) / 255
    np.testing.assert_allclose(photo.pixels().permute(1, 2, 0), expected, atol=1e-6)


@pytest.mark.parametrize("black", [0.0, 0.5, 0.8])
def test_a_change_is_applied_to_cyan_magenta_and_yellow(black: float) -> None:
    photo = Photo.decode(_tiff(_inks(black).astype(np.uint16) * 257), "a")
    change = 0.02 * torch.randn(photo.pixels().shape, generator=torch.Generator().manual_seed(0))
    changed = changed_photo(photo, change)
    np.testing.assert_array_equal(changed.stored_pixels[..., 3], photo.stored_pixels[..., 3])
    seen = changed.pixels() - photo.pixels()
    free = (photo.pixels() > 0.1) & (photo.pixels() < 0.8)  # where no ink is clipped
    assert torch.corrcoef(torch.stack([seen[free], change[free]]))[0, 1] > 0.9


@pytest.mark.parametrize("target", ["jpeg", "tiff"])
@pytest.mark.parametrize("name", ["JPEG", "TIFF"])
def test_cmyk_is_kept_between_jpeg_and_tiff(name: str, target: str) -> None:
    photo = Photo.decode(FILES[name], "a")
    again = Photo.decode(photo.encode(target, finer=True), "b")
    assert (again.stored_pixels.shape[2], again.icc) == (4, cmyk_profile())
    assert np.abs(again.stored_pixels.astype(int) - photo.stored_pixels).mean() < 2


@pytest.mark.parametrize("target", ["png", "webp", "avif", "heic", "bmp"])
def test_cmyk_becomes_srgb_in_other_formats(target: str) -> None:
    photo = Photo.decode(FILES["TIFF"], "a")
    written = Photo.decode(photo.encode(target, finer=True), "b")
    assert (written.stored_pixels.shape[2], written.icc) == (3, None)
    assert (written.pixels() - photo.pixels()).abs().mean() < 0.01


def test_alpha_of_a_cmyk_tiff_is_kept() -> None:
    planes = np.dstack([_inks(), np.linspace(0, 255, 128, dtype=np.uint8)[None].repeat(96, axis=0)])
    photo = Photo.decode(_tiff(planes, extrasamples=["unassalpha"]), "a")
    assert photo.alpha is not None
    again = Photo.decode(photo.encode(), "b")
    np.testing.assert_array_equal(again.alpha, photo.alpha)
    np.testing.assert_array_equal(again.stored_pixels, photo.stored_pixels)
    flat = Photo.decode(photo.encode("jpeg", finer=True), "c")
    assert (flat.pixels() - photo.pixels()).abs().mean() < 0.03


def test_an_rgb_profile_in_a_cmyk_file_is_not_applied_but_kept() -> None:
    data = saved(noise(40, 50, 3), "JPEG", "CMYK", icc_profile=wide_gamut())
    photo = Photo.decode(data, "a")
    assert photo.icc is None
    assert opened(photo.encode()).info["icc_profile"] == wide_gamut()
