"""Invalid files are refused with a one-line error that begins with the path."""

from __future__ import annotations

import os
import struct
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import tifffile
from hypothesis import given, settings, strategies as st
from photo_files import chunk, exif, lossless, noise, saved, scene
from PIL import Image

from homing.errors import PhotoError, UnknownNameError
from homing.photo import Photo, format_name


def _refusal(path: Path, data: bytes | None = None) -> str:
    """The error of a file, without its path."""
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(PhotoError) as caught:
        Photo.load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def _animation(format: str) -> bytes:
    first, second, buffer = Image.fromarray(scene()), Image.fromarray(scene()[::-1]), BytesIO()
    first.save(buffer, format, save_all=True, append_images=[second])
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty file"),
        (b"just words, renamed", "not a photo, or its header is damaged; supported: JPEG, PNG"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "damaged: "),
        (b"\0\0\0\x18ftyphevc\0\0\0\0msf1hevc", "one frame is expected, got a sequence"),
        (saved(scene(), "GIF"), "GIF is not supported; supported: JPEG"),
        (saved(scene()[:8, :8], "PNG"), "too small to recognize: 8×8, at least 32×32 is needed"),
        (saved(scene()[:31], "TIFF"), "too small to recognize: 128×31, at least 32×32 is needed"),
        (saved(scene().astype(np.float32)[..., 0], "TIFF"), "got mode F"),
    ],
)
def test_error_messages(tmp_path, data, words):
    assert words in _refusal(tmp_path / "a.jpg", data)


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG", "TIFF", "AVIF"])
def test_animations_are_refused(tmp_path, format):
    assert _refusal(tmp_path / "a", _animation(format)).startswith(
        "animated or multi-page: one frame is expected, got 2"
    )


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF", "HEIC", "BMP"])
def test_truncated_files_are_refused(tmp_path, format):
    data = saved(noise(200, 200, 3), format)
    for part in (0.1, 0.5, 0.9):
        assert _refusal(tmp_path / "a", data[: int(len(data) * part)])


@pytest.mark.parametrize("format", ["PNG", "TIFF"])
def test_truncated_16_bit_files_are_refused(tmp_path, format):
    data = lossless(noise(200, 200, 3, dtype=np.uint16), format)
    assert _refusal(tmp_path / "a", data[: len(data) // 2]).startswith("damaged: ")


def test_too_large_is_refused_before_any_pixel_is_decoded(tmp_path):
    side = 20_000
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", side, side, 16, 2, 0, 0, 0)) + chunk(b"IDAT", b"")
    assert _refusal(tmp_path / "a.png", png).startswith("too large: ")
    buffer = BytesIO()
    tifffile.imwrite(buffer, noise(40, 40, 3, dtype=np.uint16), photometric="rgb")
    buffer.seek(0)
    with tifffile.TiffFile(buffer) as file:
        for tag in ("ImageWidth", "ImageLength"):
            file.pages.first.tags[tag].overwrite(side)
    assert _refusal(tmp_path / "a.tif", buffer.getvalue()).startswith("too large: 20000×20000")


def test_paths_that_are_no_regular_files_are_refused(tmp_path):
    fifo = tmp_path / "pipe.jpg"
    os.mkfifo(fifo)
    assert _refusal(fifo) == "not a regular file; the file of a photo is expected"
    assert _refusal(tmp_path) == "a folder; the file of a photo is expected"
    assert _refusal(tmp_path / "missing.jpg") == "cannot be read: No such file or directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_files_are_refused(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(saved(scene(), "PNG"))
    path.chmod(0)
    assert _refusal(path) == "cannot be read: Permission denied"


def test_images_too_large_for_a_format_are_refused():
    photo = Photo.decode(saved(np.zeros((32, 16384), np.uint8), "PNG"), "wide.png")
    with pytest.raises(PhotoError, match=r"^wide\.png: cannot be written as WebP: "):
        photo.encode("webp")


def test_format_names():
    assert [format_name(name) for name in ("jpg", "JPEG", "tif", "WebP", "heif")] == [
        *("JPEG", "JPEG", "TIFF", "WEBP", "HEIC")
    ]
    with pytest.raises(UnknownNameError, match="unknown format 'jpge'; did you mean 'jpeg'"):
        Photo.decode(saved(scene(), "PNG"), "a").encode("jpge")


SAMPLES = [saved(scene(), format, exif=exif(6)) for format in ("JPEG", "PNG", "WEBP", "TIFF", "AVIF", "HEIC")]
SAMPLES += [lossless(noise(40, 40, 4, dtype=np.uint16), format) for format in ("PNG", "TIFF")]
SAMPLES += [saved(scene(), "BMP"), saved(scene(), "TIFF", "CMYK", compression="tiff_lzw")]


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(deadline=None)
@given(st.sampled_from(SAMPLES), st.integers(0, 10**6), st.binary(min_size=1, max_size=8), st.booleans())
def test_damaged_files_raise_only_photo_error(sample, position, noise_, near_the_start):
    at = position % (200 if near_the_start else len(sample))
    data = sample[:at] + noise_ + sample[at + len(noise_) :]
    try:
        photo = Photo.decode(data, "a")
        photo.pixels()
        photo.encode()
        photo.encode("tif" if photo.format != "TIFF" else "png")
    except PhotoError as error:
        assert str(error).startswith("a: ")
        assert "\n" not in str(error)
