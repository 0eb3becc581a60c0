"""What a written file has in common with the original no more is said in short sentences."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pillow_heif
import pytest
import skimage.data
import torch
from PIL import Image
from tests.photo.photo_files import CAMERA, cmyk_profile, exif, gray_profile, lossless, noise, saved, scene

from homing.photo import SUFFIXES, Photo, differences

XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/">words</x:xmpmeta>'


def _notes(data: bytes, format: str | None = None, **settings: bool) -> list[str]:
    return differences(data, Photo.decode(data, "a").encode(format, **settings), "a")


@pytest.mark.parametrize("format", SUFFIXES)
def test_the_same_kind_of_file_is_no_difference(format: str) -> None:
    data = saved(scene(), format)
    assert differences(data, data) == []
    again = Photo.decode(data, "a").encode()
    assert differences(again, Photo.decode(again, "b").encode()) == []


@pytest.mark.parametrize("path", sorted(CAMERA.glob("*.jpg")), ids=lambda path: path.stem)
def test_camera_files_stay_what_they_are(path) -> None:
    data = path.read_bytes()
    assert all("further picture" in note for note in _notes(data))


def test_a_palette_that_becomes_rgb_grows() -> None:
    data = saved(skimage.data.astronaut(), "PNG", "P")
    photo = Photo.decode(data, "a")
    moved = photo.with_change(0.01 * torch.randn(photo.pixels().shape, generator=torch.Generator().manual_seed(0)))
    (note,) = differences(data, moved.encode())
    assert note.startswith("PNG grew from ")
    assert note.endswith(": a palette became RGB.")
    assert " KB to " in note


def test_growth_without_another_reason() -> None:
    data = saved(np.full((200, 200, 3), 100, np.uint8), "PNG")
    photo = Photo.decode(data, "a")
    moved = photo.with_change(0.01 * torch.randn(photo.pixels().shape, generator=torch.Generator().manual_seed(0)))
    (note,) = differences(data, moved.encode())
    assert note.endswith(": the change adds detail, which compresses badly.")


def test_finer_jpeg_files() -> None:
    notes = _notes(saved(scene(), "JPEG", quality=75, subsampling=2), finer=True)
    assert "written with finer quantization tables" in " ".join(notes)
    assert "written with color at full resolution." in notes


def test_progressive_jpeg_files() -> None:
    progressive, baseline = (saved(scene(), "JPEG", progressive=each) for each in (True, False))
    assert differences(progressive, baseline) == ["progressive coding became baseline."]
    assert _notes(progressive) == []


def test_cmyk() -> None:
    data = saved(scene(), "JPEG", "CMYK", icc_profile=cmyk_profile(), quality=95)
    assert _notes(data) == []
    assert "CMYK became sRGB, without its profile" in " ".join(_notes(data, "png"))


def test_bits_alpha_and_profile() -> None:
    deep = lossless(noise(40, 50, 4, dtype=np.uint16), "PNG")
    assert {"16 bits a channel became 8.", "transparent areas became white."} <= set(_notes(deep, "jpeg"))
    assert "16 bits a channel became 10." in _notes(deep, "heic")
    gray = saved(scene(), "PNG", "L", icc_profile=gray_profile())
    assert any("gray became RGB" in note for note in _notes(gray, "bmp"))


def test_metadata_that_a_format_cannot_hold() -> None:
    data = saved(scene(), "JPEG", exif=exif(1), xmp=XMP, comment=b"hello")
    assert {"EXIF was dropped.", "XMP was dropped.", "comment was dropped."} <= set(_notes(data, "bmp"))
    assert not any("dropped" in note for note in _notes(data))


def test_further_pictures() -> None:
    buffer = BytesIO()
    first, second = Image.fromarray(scene()), Image.fromarray(scene()[::-1])
    first.save(buffer, "MPO", save_all=True, append_images=[second])
    assert "1 further picture in the file dropped." in _notes(buffer.getvalue())
    file = pillow_heif.from_pillow(first)
    for image in (second, first):
        file.add_from_pillow(image)
    buffer = BytesIO()
    file.save(buffer)
    assert "2 further pictures in the file dropped." in _notes(buffer.getvalue())
