"""Round trips: lossless formats keep every pixel, lossy formats most of the quality."""

from __future__ import annotations

import numpy as np
import pytest
import tifffile
from hypothesis import given, settings, strategies as st
from photo_files import CAMERA, exif, lossless, noise, opened, saved, scene
from PIL import JpegImagePlugin

from homing.photo import SUFFIXES, Photo


def _planes(photo: Photo) -> np.ndarray:
    return photo.stored_pixels if photo.alpha is None else np.dstack([photo.stored_pixels, photo.alpha])


@settings(deadline=None)
@given(
    format=st.sampled_from(["PNG", "TIFF"]),
    dtype=st.sampled_from([np.uint8, np.uint16]),
    channels=st.integers(1, 4),
    size=st.tuples(st.integers(32, 50), st.integers(32, 50)),
    target=st.sampled_from(["PNG", "TIFF"]),
    seed=st.integers(0, 1000),
)
def test_lossless_formats_keep_every_pixel(format, dtype, channels, size, target, seed):
    array = noise(*size, channels, dtype=dtype, seed=seed)
    photo = Photo.decode(lossless(array, format), "a")
    again = Photo.decode(photo.encode(target), "b")
    for decoded in (photo, again):
        assert decoded.stored_pixels.dtype == dtype
        np.testing.assert_array_equal(_planes(decoded), array)
    assert again.format == target


@pytest.mark.parametrize("format", ["WEBP", "BMP", "PNG", "TIFF"])
@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
def test_lossless_files_keep_pixels_in_every_mode(format, mode):
    array = noise(40, 50, 4)
    settings = {"lossless": True, "exact": True} if format == "WEBP" else {}
    photo = Photo.decode(saved(array, "PNG", mode), "a")
    source = Photo.decode(saved(array, format, mode, **settings), "b") if format != "BMP" else photo
    again = Photo.decode(source.encode(format), "c")
    np.testing.assert_array_equal(again.pixels(), photo.pixels())


@pytest.mark.parametrize("mode", ["1", "P", "PA"])
def test_palette_and_bilevel_become_gray_or_color(mode):
    data = saved(scene(), "TIFF" if mode != "P" else "PNG", mode if mode != "PA" else "P")
    photo = Photo.decode(data, "a")
    assert photo.stored_pixels.shape[2] == (1 if mode == "1" else 3)
    expected = np.asarray(opened(data).convert("RGB"))
    np.testing.assert_array_equal(np.broadcast_to(photo.stored_pixels, expected.shape), expected)


def test_palette_with_transparency_becomes_rgba():
    data = saved(scene(), "PNG", "P", transparency=7)
    np.testing.assert_array_equal(_planes(Photo.decode(data, "a")), np.asarray(opened(data).convert("RGBA")))


@pytest.mark.parametrize("compression", [None, "lzw", "deflate", "packbits", "zstd", "jpeg"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_tiff_keeps_lossless_compression(tmp_path, compression, order):
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, scene(), photometric="rgb", compression=compression, byteorder=order)
    photo = Photo.load(path)
    path.write_bytes(photo.encode())
    with tifffile.TiffFile(path) as file:
        kept = "deflate" if compression == "jpeg" else (compression or "none")
        assert file.pages.first.compression.name.lower().removeprefix("adobe_") == kept
        np.testing.assert_array_equal(file.pages.first.asarray(), photo.stored_pixels)


def test_tiff_of_separate_planes_white_is_zero_and_associated_alpha(tmp_path):
    path, levels = tmp_path / "a.tif", noise(40, 50, 3, dtype=np.uint16)
    tifffile.imwrite(path, np.moveaxis(levels, 2, 0), photometric="rgb", planarconfig="separate")
    np.testing.assert_array_equal(Photo.load(path).stored_pixels, levels)
    tifffile.imwrite(path, levels[..., 0], photometric="miniswhite")
    np.testing.assert_array_equal(Photo.load(path).stored_pixels[..., 0], 65535 - levels[..., 0])
    half = np.dstack([levels // 2, np.full((40, 50), 32768, np.uint16)])
    tifffile.imwrite(path, half, photometric="rgb", extrasamples=["assocalpha"])
    assert np.abs(Photo.load(path).stored_pixels.astype(int) - levels).max() <= 2


@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("progressive", [False, True])
def test_jpeg_keeps_tables_subsampling_and_size(subsampling, progressive):
    data = saved(scene(300, 400), "JPEG", quality=83, subsampling=subsampling, progressive=progressive, optimize=True)
    before, after = opened(data), opened(Photo.decode(data, "a").encode())
    assert after.quantization == before.quantization
    assert JpegImagePlugin.get_sampling(after) == subsampling
    assert after.info.get("progressive") == before.info.get("progressive")
    assert len(after.fp.getvalue()) == pytest.approx(len(data), rel=0.1)


@pytest.mark.parametrize("quality", [60, 99])
def test_finer_jpeg_has_less_loss_and_finer_tables(quality):
    photo = Photo.decode(saved(noise(64, 64, 3), "JPEG", quality=quality), "a")

    def loss(data: bytes) -> float:
        return float(np.abs(Photo.decode(data, "b").stored_pixels.astype(int) - photo.stored_pixels).mean())

    finer = photo.encode(finer=True)
    assert loss(finer) < loss(photo.encode())
    assert JpegImagePlugin.get_sampling(opened(finer)) == 0
    own, fine = opened(photo.data).quantization[0], opened(finer).quantization[0]
    assert all(a <= b for a, b in zip(fine, own, strict=True))


def test_finer_jpeg_tables_divide_the_original_steps():
    """Other fine tables would change a textured photo by more than the budget of 43.8 dB."""
    photo = Photo.decode(saved(noise(64, 64, 3), "JPEG", quality=90, subsampling=0), "a")
    error = Photo.decode(photo.encode(finer=True), "b").stored_pixels.astype(int) - photo.stored_pixels
    assert np.square(error).mean() < 1  # 48 dB; the tables of quality 96 give an error of 12


@pytest.mark.parametrize("progressive", [False, True])
def test_jpeg_of_noise_at_quality_100_is_written(progressive):
    """Pillow's buffer is too small for such a file when its Huffman tables are optimized."""
    data = saved(noise(300, 300, 3), "JPEG", quality=100, subsampling=0)
    assert Photo.decode(Photo.decode(data, "a").encode(finer=progressive), "b").stored_pixels.shape == (300, 300, 3)


@pytest.mark.parametrize("format", SUFFIXES)
@pytest.mark.parametrize("target", SUFFIXES)
def test_every_format_converts_to_every_other(format, target):
    photo = Photo.decode(Photo.decode(saved(scene(), "PNG", exif=exif(6)), "a").encode(format), "b")
    again = Photo.decode(photo.encode(target.lower(), finer=True), "c")
    assert again.format == target
    assert again.pixels().shape == (3, 128, 96)
    assert (again.pixels() - photo.pixels()).abs().mean() < 0.02


@pytest.mark.parametrize("target", SUFFIXES)
def test_16_bits_with_alpha_convert_to_every_format(target):
    photo = Photo.decode(lossless(np.dstack([scene(), scene()[..., :1]]).astype(np.uint16) * 257, "PNG"), "a")
    again = Photo.decode(photo.encode(target, finer=True), "b")
    assert again.stored_pixels.dtype == (np.uint16 if target in ("PNG", "TIFF", "HEIC") else np.uint8)
    if target == "JPEG":
        assert again.alpha is None
    else:
        scale = np.iinfo(again.stored_pixels.dtype).max // 255
        # libheif has no setting for lossless alpha.
        most = 2 * scale if target == "HEIC" else 0
        assert np.abs(again.alpha.astype(int) - scene()[..., 0].astype(int) * scale).max() <= most
    assert (again.pixels() - photo.pixels()).abs().mean() < 0.01


@pytest.mark.parametrize("path", sorted(CAMERA.glob("*.jpg")), ids=lambda path: path.stem)
def test_camera_files_keep_their_size(path):
    photo = Photo.load(path)
    assert len(photo.encode()) == pytest.approx(len(photo.data), rel=0.1)
