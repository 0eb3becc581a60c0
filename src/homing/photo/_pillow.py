"""The formats that Pillow reads (JPEG, PNG, WebP, AVIF, BMP), and those written with it alone: WebP, AVIF and BMP."""

from __future__ import annotations

import struct
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from homing.errors import PhotoError
from homing.photo import _png
from homing.photo._metadata import Directory, Metadata
from homing.photo._pixels import Decoding, Header, in_srgb, planes, to_8_bit, upright
from homing.photo.files import QUALITIES

if TYPE_CHECKING:
    from homing.photo.photo import Photo

# GIF is opened only to name it in the error.
_FORMATS = ("JPEG", "PNG", "WEBP", "AVIF", "BMP", "GIF")


def header(data: bytes, _name: str) -> Header:
    """The format as Pillow names it, size and frames; images that are too large are refused."""
    with Image.open(BytesIO(data), formats=_FORMATS) as image:
        # The other pictures of an MPO are previews, or the second view of a stereo camera.
        format = "JPEG" if image.format == "MPO" else str(image.format)
        return Header(format, image.size, 1 if format == "JPEG" else getattr(image, "n_frames", 1))


def decode(data: bytes, name: str) -> Decoding:
    """The pixels; those of 16 bits with imagecodecs, because Pillow reduces them to 8."""
    with Image.open(BytesIO(data), formats=_FORMATS) as image:
        png = image.format == "PNG"
        exif = _png.exif(data) if png else image.info.get("exif", b"")
        levels = _png.decode_16_bit(data) if png and _png.is_16_bit(data) else image_planes(image, name)
        icc = image.info.get("icc_profile")
        return Decoding(levels, image.mode == "CMYK", Directory.read(exif).orientation(), icc)


def image_planes(image: Image.Image, name: str) -> np.ndarray:
    """An opened image as 8-bit planes: gray, RGB or CMYK, with alpha where something is transparent."""
    image.load()
    gray, color = image.mode in ("1", "L", "LA"), image.mode in ("P", "PA", "RGB", "RGBA", "RGBX", "YCbCr")
    if image.mode == "CMYK":
        return np.asarray(image)
    if not (gray or color):
        raise PhotoError(f"{name}: 8 or 16 bits per channel, gray or color, are expected; got mode {image.mode}")
    target = ("L" if gray else "RGB") + ("A" if image.has_transparency_data else "")
    return np.asarray(image if image.mode == target else image.convert(target))


def save(image: Image.Image, format: str, **settings: Any) -> bytes:
    """The bytes of a file of an image."""
    buffer = BytesIO()
    image.save(buffer, format, **settings)
    return buffer.getvalue()


def encode_webp(photo: Photo, finer: bool) -> bytes:
    """A WebP file with the metadata of the original."""
    # Lossy WebP halves the resolution of color: only a photo that was lossy WebP before loses nothing visible.
    lossless = finer if photo.format != "WEBP" else is_lossless_webp(photo.data)
    image, carried = _without_gray_profile(photo)
    return save(image, "WEBP", lossless=lossless, quality=QUALITIES["WEBP"][finer], exact=True, **carried)


def encode_avif(photo: Photo, finer: bool) -> bytes:
    """An AVIF file with the metadata of the original."""
    image, settings = _without_gray_profile(photo)
    if finer:
        settings["subsampling"] = "4:4:4"
    if photo.alpha is not None:
        settings["advanced"] = {"a:cq-level": "0"}  # lossless alpha
    return save(image, "AVIF", quality=QUALITIES["AVIF"][finer], **settings)


def encode_bmp(photo: Photo) -> bytes:
    """A BMP file, which holds no orientation and no profile: both are applied to the pixels."""
    dpi = Metadata.of(photo.data).dpi or (96, 96)
    plain = photo if photo.icc is None else in_srgb(photo)
    image = Image.fromarray(np.ascontiguousarray(upright(to_8_bit(planes(plain)), photo.orientation)))
    if photo.alpha is None:
        return save(image, "BMP", dpi=dpi)
    # Pillow cannot read back the alpha it writes, so this writes a header with channel masks (BITMAPV4HEADER).
    image = image.convert("RGBA")
    rows = image.transpose(Image.Transpose.FLIP_TOP_BOTTOM).tobytes("raw", "BGRA")
    per_meter = [round(value / 0.0254) for value in dpi]
    masks = (0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    header = struct.pack("<IiiHHIIiiII", 108, *image.size, 1, 32, 3, len(rows), *per_meter, 0, 0)
    header += struct.pack("<4I", *masks) + b"BGRs" + bytes(48)
    return struct.pack("<2sIII", b"BM", 14 + len(header) + len(rows), 0, 14 + len(header)) + header + rows


def _without_gray_profile(photo: Photo) -> tuple[Image.Image, dict[str, Any]]:
    """The photo and its metadata for a format that stores gray as RGB, for which a gray profile is invalid."""
    carried = Metadata.of(photo.data).arguments()
    if photo.icc is not None and photo.stored_pixels.shape[2] != 3:
        photo, carried = in_srgb(photo), {name: value for name, value in carried.items() if name != "icc_profile"}
    return Image.fromarray(to_8_bit(planes(photo))), carried


def is_lossless_webp(data: bytes) -> bool:
    """Whether a WebP file has its pixels in a VP8L chunk."""
    position = 12
    while position + 8 <= len(data) and data[position : position + 4] not in (b"VP8 ", b"VP8L"):
        (size,) = struct.unpack_from("<I", data, position + 4)
        position += 8 + size + size % 2
    return data[position : position + 4] == b"VP8L"
