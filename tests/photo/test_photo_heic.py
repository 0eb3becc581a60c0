"""HEIC and HEIF: upright pixels, all bits, metadata, several pictures."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pillow_heif
import pytest
import torch
from PIL import Image
from tests.photo.photo_files import (
    changed_photo,
    exif,
    gray_profile,
    heic_of_10_bits,
    lossless,
    noise,
    saved,
    scene,
    wide_gamut,
)

from homing.photo import Photo, image_size

XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/">words</x:xmpmeta>'
TURNED_XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><r tiff:Orientation="6"/></x:xmpmeta>'


def _header(data: bytes) -> pillow_heif.HeifImage:
    file = pillow_heif.open_heif(data)
    return file[file.primary_index]


def _orientation(data: bytes) -> int:
    block = Image.Exif()
    block.load(_header(data).info["exif"] or b"")
    return block.get(274, 1)


def _apart(first: Photo, second: Photo) -> float:
    return float((first.pixels() - second.pixels()).abs().mean())


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_neither_applied_twice_nor_lost(orientation: int) -> None:
    source = Photo.decode(saved(scene(), "JPEG", exif=exif(orientation), xmp=TURNED_XMP, quality=95), "a")
    heic = Photo.decode(source.encode("heic"), "b")
    assert (heic.format, heic.orientation) == ("HEIC", 1)
    assert _orientation(heic.data) == 1
    assert image_size(heic.data, "b") == tuple(reversed(source.pixels().shape[1:]))
    for again in (heic, *(Photo.decode(heic.encode(format), "c") for format in ("heic", "jpeg", "png", "tiff"))):
        assert again.orientation == 1
        assert _apart(again, source) < 0.05, "about 0.05 is the loss of 4:2:0; a wrong orientation gives 0.3"


@pytest.mark.parametrize("orientation", range(1, 9))
def test_irot_and_imir_boxes_are_applied(orientation: int) -> None:
    """pillow-heif writes an EXIF orientation as irot and imir boxes."""
    data = saved(scene(), "HEIC", exif=exif(orientation), quality=95, chroma=444)
    upright = Photo.decode(saved(scene(), "PNG", exif=exif(orientation)), "a")
    photo = Photo.decode(data, "b")
    assert photo.orientation == 1
    assert _apart(photo, upright) < 0.01
    again = Photo.decode(photo.encode(), "c")
    assert _apart(again, upright) < 0.05
    assert again.pixels().shape == upright.pixels().shape


def test_metadata_and_profile_are_kept() -> None:
    data = saved(scene(), "HEIC", exif=exif(1), xmp=XMP, icc_profile=wide_gamut())
    photo = Photo.decode(data, "a")
    assert photo.icc == wide_gamut()
    written = _header(photo.encode()).info
    assert (written["xmp"], written["icc_profile"]) == (XMP, wide_gamut())
    block = Image.Exif()
    block.load(written["exif"])
    assert block[272] == "Camera"
    assert block.get_ifd(34665)[33434] == (1, 250)
    assert block.get_ifd(34853)[1] == "N"


def test_the_color_description_is_kept() -> None:
    data = saved(
        scene(), "HEIC", color_primaries=12, transfer_characteristics=13, matrix_coefficients=6, full_range_flag=1
    )
    before, after = (_header(each).info["nclx_profile"] for each in (data, Photo.decode(data, "a").encode()))
    assert before["color_primaries"] == 12
    assert after == before


@pytest.mark.parametrize("chroma", [420, 422, 444])
def test_chroma_subsampling_is_kept(chroma: int) -> None:
    photo = Photo.decode(saved(scene(), "HEIC", chroma=chroma), "a")
    assert _header(photo.encode()).info["chroma"] == chroma
    assert _header(photo.encode(finer=True)).info["chroma"] == 444


@pytest.mark.parametrize("bits", [10, 12])
def test_more_than_8_bits_are_read_as_16_and_written_again(bits: int) -> None:
    photo = Photo.decode(heic_of_10_bits(bits), "a")
    assert photo.stored_pixels.dtype == np.uint16
    assert photo.stored_pixels.max() > 65_000, "white stays white"
    again = Photo.decode(photo.encode(finer=True), "b")
    assert _header(again.data).info["bit_depth"] == bits
    assert len(np.unique(again.stored_pixels)) > 256
    assert _apart(again, photo) < 0.004
    # A 16-bit PNG keeps every value, and can become HEIC again.
    png = Photo.decode(photo.encode("png"), "c")
    np.testing.assert_array_equal(png.stored_pixels, photo.stored_pixels)
    assert _header(png.encode("heic")).info["bit_depth"] == 10


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
def test_gray_and_alpha(mode: str) -> None:
    array = np.dstack([scene(), scene()[..., 0]])
    profile = {"icc_profile": gray_profile()} if mode[0] == "L" else {}
    photo = Photo.decode(saved(array, "PNG", mode, **profile), "a")
    again = Photo.decode(photo.encode("heic", finer=True), "b")
    assert (again.alpha is None) == (photo.alpha is None)
    assert again.stored_pixels.shape[2] == (1 if mode == "L" else 3)
    assert again.icc == (gray_profile() if mode == "L" else None)
    assert _apart(again, photo) < 0.01


def test_premultiplied_alpha_becomes_straight() -> None:
    array = np.dstack([scene() // 2, np.full((96, 128), 128, np.uint8)])
    buffer = BytesIO()
    pillow_heif.encode("RGBa", (128, 96), array.tobytes(), buffer, quality=95, chroma=444)
    photo = Photo.decode(buffer.getvalue(), "a")
    assert photo.alpha is not None
    assert np.abs(photo.stored_pixels.astype(int) - scene()).mean() < 4


def test_the_primary_picture_is_decoded() -> None:
    file = pillow_heif.from_pillow(Image.fromarray(scene()[::-1].copy()))
    file.add_from_pillow(Image.fromarray(scene()))
    buffer = BytesIO()
    file.save(buffer, primary_index=1, quality=95)
    photo = Photo.decode(buffer.getvalue(), "a")
    assert np.abs(photo.stored_pixels.astype(int) - scene()).mean() < 9
    assert len(pillow_heif.open_heif(photo.encode())) == 1


def test_tiles_are_kept() -> None:
    buffer = BytesIO()
    pillow_heif.from_pillow(Image.fromarray(scene(150, 200))).save(buffer, tile_size=64)
    photo = Photo.decode(buffer.getvalue(), "a")
    again = Photo.decode(photo.encode(), "b")
    assert _header(again.data).info["tiling"]["tile_width"] == 64
    assert again.stored_pixels.shape == (150, 200, 3)
    assert _apart(again, photo) < 0.01


def test_a_change_survives_writing() -> None:
    photo = Photo.decode(saved(scene(), "HEIC", quality=80), "a")
    change = 0.03 * torch.sign(torch.randn(3, 12, 16, generator=torch.Generator().manual_seed(0)))
    change = torch.nn.functional.interpolate(change[None], photo.pixels().shape[1:])[0]
    change = change.mean(0, keepdim=True).expand(3, -1, -1)
    wanted = (photo.pixels() + change).clamp(0, 1)
    for finer in (False, True):
        seen = Photo.decode(changed_photo(photo, change).encode(finer=finer), "b").pixels()
        assert (seen - wanted).square().mean() < (photo.pixels() - wanted).square().mean() / (20 if finer else 5)


def test_noise_of_16_bits_in_a_file_of_another_format() -> None:
    photo = Photo.decode(lossless(noise(40, 50, 4, dtype=np.uint16), "PNG"), "a")
    again = Photo.decode(photo.encode("heif"), "b")
    assert (again.stored_pixels.shape, again.stored_pixels.dtype) == ((40, 50, 3), np.uint16)
    assert again.alpha is not None
