"""A written file keeps the metadata of the original."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
import tifffile
from photo_files import (
    CAMERA,
    chunk,
    exif,
    gray_profile,
    lossless,
    noise,
    opened,
    saved,
    scene,
    wide_gamut,
)
from PIL import Image

from homing.photo import Photo

XMP = b'<?xpacket begin=""?><x:xmpmeta xmlns:x="adobe:ns:meta/">words</x:xmpmeta>'


def _segments(data: bytes) -> list[tuple[str, bytes]]:
    """Pillow's list of APPn and COM segments, as an independent reader."""
    return [(name, body) for name, body in opened(data).applist if name != "APP14"]


@pytest.mark.parametrize("path", sorted(CAMERA.glob("*.jpg")), ids=lambda path: path.stem)
def test_camera_jpeg_keeps_every_segment_byte_for_byte(path):
    photo = Photo.load(path)
    for finer in (False, True):
        assert _segments(photo.encode(finer=finer)) == _segments(photo.data)


@pytest.mark.parametrize("path", sorted(CAMERA.glob("*.jpg")), ids=lambda path: path.stem)
@pytest.mark.parametrize("target", ["png", "webp", "tif", "avif"])
def test_camera_exif_survives_another_format(path, target):
    photo = Photo.load(path)
    before, after = opened(photo.data).getexif(), opened(photo.encode(target)).getexif()
    for ifd in (34665, 34853):
        # compared as strings, because some GPS values are 0/0; tag 40965 is an offset in the file
        old, new = ({k: repr(v) for k, v in e.get_ifd(ifd).items() if k != 40965} for e in (before, after))
        assert new == old
    assert (after.get(272), after.get(274, 1)) == (before.get(272), before.get(274, 1))


def test_jpeg_keeps_icc_xmp_iptc_comment_and_density():
    iptc = b"\xff\xed" + (2 + 22).to_bytes(2, "big") + b"Photoshop 3.0\x008BIM\x04\x04\0\0"
    data = saved(scene(), "JPEG", icc_profile=wide_gamut(), xmp=XMP, exif=exif(3), comment=b"hello", dpi=(200, 200))
    data = data[:2] + iptc + data[2:]
    written = Photo.decode(data, "a").encode()
    assert _segments(written) == _segments(data)
    assert iptc in written
    assert {"icc_profile", "xmp", "comment"} <= opened(written).info.keys()


def test_jpeg_drops_mpf_and_adobe_segments():
    buffer = BytesIO()
    first, second = Image.fromarray(scene()), Image.fromarray(scene()[::-1])
    first.save(buffer, "MPO", save_all=True, append_images=[second])
    adobe = b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\x01"
    data = buffer.getvalue()[:2] + adobe + buffer.getvalue()[2:]
    photo = Photo.decode(data, "a")
    assert b"MPF\0" in data
    assert photo.format == "JPEG"
    written = photo.encode()
    assert b"MPF\0" not in written
    assert b"Adobe" not in written
    assert opened(written).format == "JPEG"


def test_png_keeps_metadata_chunks_and_drops_coding_chunks():
    kept = [(b"gAMA", b"\0\0\xb1\x8f"), (b"tEXt", b"Title\0x"), (b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + XMP)]
    kept += [(b"pHYs", bytes(8) + b"\1"), (b"tIME", bytes([7, 232, 1, 1, 1, 1, 1])), (b"eXIf", exif(5)[6:])]
    dropped = [(b"bKGD", bytes(6)), (b"sBIT", b"\x08\x08\x08"), (b"unSF", b"unsafe to copy")]
    data = lossless(noise(40, 40, 3), "PNG")
    end = data.rindex(b"IDAT") - 4
    data = data[:end] + b"".join(chunk(*c) for c in kept[:-1] + dropped) + data[end:-12] + chunk(*kept[-1]) + data[-12:]
    photo = Photo.decode(data, "a")
    written = photo.encode()
    assert photo.orientation == 5
    assert all(chunk(*c) in written for c in kept)
    assert not any(type_ in written for type_, _ in dropped)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("bigtiff", [False, True])
def test_tiff_keeps_its_tags(order, bigtiff):
    tags = [(270, 2, None, "description", True), (315, 2, None, "artist", True), (274, 3, 1, 6, True)]
    tags += [(700, 1, len(XMP), XMP, True), (33723, 7, 12, b"iptc" * 3, True), (33432, 2, None, "copyright", True)]
    buffer = BytesIO()
    tifffile.imwrite(
        buffer, scene(), photometric="rgb", byteorder=order, bigtiff=bigtiff, extratags=tags, resolution=(30, 40),
        resolutionunit="centimeter", iccprofile=wide_gamut(), metadata=None, software="software",
    )  # fmt: skip
    photo = Photo.decode(buffer.getvalue(), "a")
    assert (photo.orientation, photo.icc) == (6, wide_gamut())
    buffer.seek(0)
    with tifffile.TiffFile(buffer) as before, tifffile.TiffFile(BytesIO(photo.encode())) as after:
        for tag in (270, 274, 282, 283, 296, 305, 315, 700, 33432, 33723, 34675):
            assert after.pages.first.tags[tag].value == before.pages.first.tags[tag].value


def test_tiff_keeps_exif_and_gps_directories():
    data = saved(scene(), "TIFF", exif=exif(8))
    before, after = opened(data).getexif(), opened(Photo.decode(data, "a").encode()).getexif()
    assert before.get_ifd(34665) == after.get_ifd(34665) != {}
    assert before.get_ifd(34853) == after.get_ifd(34853) != {}
    assert (after[272], after[274]) == ("Camera", 8)


@pytest.mark.parametrize("format", ["WEBP", "AVIF"])
def test_webp_and_avif_keep_metadata_and_orientation(format):
    data = saved(scene(), format, exif=exif(7), xmp=XMP, icc_profile=wide_gamut())
    photo = Photo.decode(data, "a")
    written = opened(photo.encode())
    assert photo.orientation == Photo.decode(photo.encode(), "b").orientation == 7
    assert (written.info["xmp"], written.info["icc_profile"]) == (XMP, wide_gamut())
    assert written.getexif().get_ifd(34665) == opened(data).getexif().get_ifd(34665) != {}


def test_webp_stays_lossless_or_lossy():
    for lossless_ in (True, False):
        photo = Photo.decode(saved(noise(40, 40, 3), "WEBP", lossless=lossless_), "a")
        assert (b"VP8L" in photo.encode()) == lossless_


@pytest.mark.parametrize("target", ["png", "tif", "jpg"])
def test_metadata_is_kept_in_other_formats(target):
    source = saved(scene(), "JPEG", icc_profile=wide_gamut(), xmp=XMP, dpi=(200, 200))
    if target == "jpg":
        source = Photo.decode(source, "a").encode("tif")
    written = opened(Photo.decode(source, "a").encode(target))
    assert written.info["icc_profile"] == wide_gamut()
    assert written.info["xmp"] == XMP
    assert written.info["dpi"] == pytest.approx((200, 200), abs=0.1)


def test_photos_with_damaged_exif_are_decoded():
    for block in (b"Exif\0\0II*\0", b"Exif\0\0MM\0*\xff\xff\xff\xff", b"Exif\0\0II*\0\x08\0\0\0\xff\xff\x12\x01\x03\0"):
        data = saved(scene(), "WEBP", exif=block)
        photo = Photo.decode(data, "a")
        assert photo.orientation == 1
        np.testing.assert_array_equal(Photo.decode(photo.encode("tif"), "b").stored_pixels, photo.stored_pixels)


@pytest.mark.parametrize("target", ["png", "webp", "bmp"])
def test_gray_profile_is_kept_or_applied_where_gray_becomes_rgb(target):
    photo = Photo.decode(saved(scene(), "PNG", "L", icc_profile=gray_profile()), "a")
    assert photo.icc == gray_profile()
    assert np.abs(photo.pixels()[0].numpy() - photo.stored_pixels[..., 0] / 255).mean() > 0.05
    again = Photo.decode(photo.encode(target, finer=True), "b")
    assert again.icc == (gray_profile() if target == "png" else None)
    assert (again.pixels() - photo.pixels()).abs().mean() < 0.01
