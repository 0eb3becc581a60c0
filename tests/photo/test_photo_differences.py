"""Differences of a written file from the original are reported in short sentences."""

from __future__ import annotations

from io import BytesIO

import imagecodecs
import numpy as np
import pillow_heif
import pytest
import skimage.data
import tifffile
import torch
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from tests.photo.photo_files import (
    CAMERA,
    changed_photo,
    cmyk_profile,
    exif,
    gray_profile,
    lossless,
    noise,
    saved,
    scene,
)

from homing.photo import SUFFIXES, Photo, differences

XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/">words</x:xmpmeta>'


def _notes(data: bytes, format: str | None = None, **settings: bool) -> list[str]:
    return differences(data, Photo.decode(data, "a").encode(format, **settings), "a")


@pytest.mark.parametrize("format", SUFFIXES)
def test_no_differences_if_the_format_and_coding_are_kept(format: str) -> None:
    data = saved(scene(), format)
    assert differences(data, data) == []
    again = Photo.decode(data, "a").encode()
    assert differences(again, Photo.decode(again, "b").encode()) == []


@pytest.mark.parametrize("path", sorted(CAMERA.glob("*.jpg")), ids=lambda path: path.stem)
def test_camera_files_lose_only_other_pictures(path) -> None:
    data = path.read_bytes()
    assert all("other picture" in note for note in _notes(data))


def test_palette_to_rgb_is_the_reason_of_growth() -> None:
    data = saved(skimage.data.astronaut(), "PNG", "P")
    photo = Photo.decode(data, "a")
    changed = changed_photo(photo, 0.01 * torch.randn(photo.pixels().shape, generator=torch.Generator().manual_seed(0)))
    (note,) = differences(data, changed.encode())
    assert note.startswith("PNG grew from ")
    assert note.endswith(": a palette became RGB.")
    assert " KB to " in note


def test_reason_of_growth_if_the_coding_is_kept() -> None:
    data = saved(np.full((200, 200, 3), 100, np.uint8), "PNG")
    photo = Photo.decode(data, "a")
    changed = changed_photo(photo, 0.01 * torch.randn(photo.pixels().shape, generator=torch.Generator().manual_seed(0)))
    (note,) = differences(data, changed.encode())
    assert note.endswith(": the change adds detail, which compresses badly.")


@pytest.mark.parametrize(
    ("format", "name", "quality"), [("WEBP", "WebP", 90), ("AVIF", "AVIF", 90), ("HEIC", "HEIC", 80)]
)
def test_a_file_of_low_quality_grows_because_of_the_quality_it_is_written_at(
    format: str, name: str, quality: int
) -> None:
    data = saved(scene(), format, quality=30)
    cause = f": it is written at quality {quality} of 100 or higher, and the change adds detail."
    usual, finer = (_notes(data, finer=finer)[0] for finer in (False, True))
    assert usual.startswith(f"{name} grew from ") and usual.endswith(cause)
    assert finer.startswith(f"{name} grew from ") and finer.endswith(cause)


def test_lossless_webp_grows_because_of_the_change() -> None:
    data = saved(np.full((200, 200, 3), 100, np.uint8), "WEBP", lossless=True)
    photo = Photo.decode(data, "a")
    changed = changed_photo(photo, 0.01 * torch.randn(photo.pixels().shape, generator=torch.Generator().manual_seed(0)))
    (note,) = differences(data, changed.encode())
    assert note.startswith("WebP grew") and note.endswith(": the change adds detail, which compresses badly.")


@pytest.mark.parametrize("format", SUFFIXES)
def test_notes_are_sentences(format: str) -> None:
    deep = lossless(noise(40, 50, 4, dtype=np.uint16), "PNG")
    for note in _notes(deep, format.lower()):
        assert note[0] == note[0].upper() and note.endswith(".") and "WEBP" not in note


def test_finer_jpeg() -> None:
    notes = _notes(saved(scene(), "JPEG", quality=75, subsampling=2), finer=True)
    assert "finer quantization tables" in " ".join(notes)
    assert "Written with color at full resolution." in notes


def test_progressive_to_baseline_jpeg() -> None:
    progressive, baseline = (saved(scene(), "JPEG", progressive=each) for each in (True, False))
    assert differences(progressive, baseline) == ["Progressive coding became baseline."]
    assert _notes(progressive) == []


def test_cmyk_to_srgb() -> None:
    data = saved(scene(), "JPEG", "CMYK", icc_profile=cmyk_profile(), quality=95)
    assert _notes(data) == []
    assert "CMYK became sRGB, without its profile" in " ".join(_notes(data, "png"))


def test_lost_bits_alpha_and_profile() -> None:
    deep = lossless(noise(40, 50, 4, dtype=np.uint16), "PNG")
    assert {"16 bits per channel became 8.", "Transparent areas became white."} <= set(_notes(deep, "jpeg"))
    assert "16 bits per channel became 10." in _notes(deep, "heic")
    gray = saved(scene(), "PNG", "L", icc_profile=gray_profile())
    assert any("gray became RGB" in note.lower().replace("rgb", "RGB") for note in _notes(gray, "bmp"))


@pytest.mark.parametrize("bits", [10, 12])
def test_avif_of_more_than_8_bits(bits: int) -> None:
    levels = noise(64, 48, 3, dtype=np.uint16) >> (16 - bits)
    data = imagecodecs.avif_encode(levels, bitspersample=bits, level=90)
    assert f"{bits} bits per channel became 8." in " ".join(_notes(data))
    assert not any("bits" in note for note in _notes(saved(scene(), "AVIF")))


def test_iptc_and_layers_of_tiff() -> None:
    iptc = b"\x1c\x02\x50\x00\x03Ann"
    resource = b"8BIM\x04\x04\0\0" + len(iptc).to_bytes(4, "big") + iptc
    for tag in [(33723, 7, len(iptc), iptc), (34377, 7, len(resource), resource)]:
        buffer = BytesIO()
        tifffile.imwrite(buffer, scene(), photometric="rgb", extratags=[(*tag, True)])
        assert _notes(buffer.getvalue()) == []
        assert "IPTC was dropped." in _notes(buffer.getvalue(), "jpeg")
    buffer = BytesIO()
    tifffile.imwrite(buffer, scene(), photometric="rgb", extratags=[(37724, 7, 64, bytes(64), True)])
    assert _notes(buffer.getvalue()) == ["The Photoshop layers were dropped."]


def test_text_of_png() -> None:
    text = PngInfo()
    text.add_text("Author", "Ann")
    assert _notes(saved(scene(), "PNG", pnginfo=text)) == []
    assert "Comment was dropped." in _notes(saved(scene(), "PNG", pnginfo=text), "bmp")
    xmp = PngInfo()
    xmp.add_itxt("XML:com.adobe.xmp", XMP.decode())
    assert not any("omment" in note for note in _notes(saved(scene(), "PNG", pnginfo=xmp), "jpeg"))


def test_metadata_that_the_format_does_not_support() -> None:
    data = saved(scene(), "JPEG", exif=exif(1), xmp=XMP, comment=b"hello")
    assert {"EXIF was dropped.", "XMP was dropped.", "Comment was dropped."} <= set(_notes(data, "bmp"))
    assert not any("dropped" in note for note in _notes(data))


def test_dropped_pictures() -> None:
    buffer = BytesIO()
    first, second = Image.fromarray(scene()), Image.fromarray(scene()[::-1])
    first.save(buffer, "MPO", save_all=True, append_images=[second])
    assert "1 other picture in the file was dropped." in _notes(buffer.getvalue())
    file = pillow_heif.from_pillow(first)
    for image in (second, first):
        file.add_from_pillow(image)
    buffer = BytesIO()
    file.save(buffer)
    assert "2 other pictures in the file were dropped." in _notes(buffer.getvalue())


def test_a_header_that_cannot_be_read_is_a_note() -> None:
    (note,) = differences(saved(scene(), "PNG"), b"not a photo")
    assert note.startswith("The differences from the original are not known: ")
