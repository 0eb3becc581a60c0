"""Encode a photo as the bytes of a file, in its own format or another."""

from __future__ import annotations

import struct
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from homing.errors import PhotoError
from homing.photo import _heif, _jpeg, _png, _tiff
from homing.photo._color import CMYK_CHANNELS, cmyk_image, to_8_bit, to_srgb
from homing.photo._errors import DECODE_ERRORS, reason
from homing.photo._metadata import Metadata
from homing.photo._orientation import upright

if TYPE_CHECKING:
    from homing.photo.photo import Photo

CMYK_FORMATS = ("JPEG", "TIFF")
"""The formats that hold CMYK; in others it becomes sRGB."""


def encode(photo: Photo, format: str, finer: bool, quick: bool) -> bytes:
    """The bytes of a file in `format`, a key of `SUFFIXES`."""
    if _is_cmyk(photo) and format not in CMYK_FORMATS:
        photo = _in_srgb(photo)
    try:
        match format:
            case "JPEG":
                return _write_jpeg(photo, finer)
            case "PNG":
                return _write_png(photo, quick)
            case "WEBP" | "AVIF" | "HEIC":
                return {"WEBP": _write_webp, "AVIF": _write_avif, "HEIC": _write_heic}[format](photo, finer)
            case _:
                return {"TIFF": _write_tiff, "BMP": _write_bmp}[format](photo)
    except DECODE_ERRORS as error:
        raise PhotoError(f"{photo.name}: cannot be written as {format}: {reason(error)}") from error


def _write_jpeg(photo: Photo, finer: bool) -> bytes:
    image = _flattened(photo)
    if photo.format == "JPEG":
        return _jpeg.write_like(photo.data, image, finer)
    carried = _metadata_arguments(photo)
    if _is_cmyk(photo) and photo.icc:
        carried["icc_profile"] = photo.icc
    if "exif" in carried:
        carried["exif"] = b"Exif\0\0" + carried["exif"]
    return _jpeg.save(image, quality=100 if finer else 95, subsampling=0, **carried)


def _write_webp(photo: Photo, finer: bool) -> bytes:
    # Lossy WebP halves the resolution of color: only a photo that was lossy WebP before loses nothing visible.
    lossless = finer if photo.format != "WEBP" else _is_lossless_webp(photo.data)
    quality = 98 if finer else 90
    image, carried = _without_gray_profile(photo)
    return _save(image, "WEBP", lossless=lossless, quality=quality, exact=True, **carried)


def _write_avif(photo: Photo, finer: bool) -> bytes:
    image, settings = _without_gray_profile(photo)
    if finer:
        settings["subsampling"] = "4:4:4"
    if photo.alpha is not None:
        settings["advanced"] = {"a:cq-level": "0"}  # lossless alpha
    return _save(image, "AVIF", quality=98 if finer else 90, **settings)


def _write_heic(photo: Photo, finer: bool) -> bytes:
    # Gray with alpha is decoded as RGB, for which a gray profile is invalid.
    plain = _in_srgb(photo) if photo.icc and photo.alpha is not None and photo.stored_pixels.shape[2] == 1 else photo
    return _heif.write(_planes(plain), photo.data, plain.icc, photo.orientation, finer)


def _write_png(photo: Photo, quick: bool) -> bytes:
    same = photo.format == "PNG"
    chunks = _png.copied_chunks(photo.data) if same else _png.new_chunks(Metadata.of(photo.data))
    return _png.write(_planes(photo), chunks, quick)


def _write_tiff(photo: Photo) -> bytes:
    profile = photo.icc if _is_cmyk(photo) else None
    return _tiff.write(photo.data, _planes(photo), alpha=photo.alpha is not None, cmyk_profile=profile)


def _write_bmp(photo: Photo) -> bytes:
    """BMP holds no orientation and no profile: both are applied to the pixels."""
    dpi = _metadata_arguments(photo).get("dpi", (96, 96))
    plain = photo if photo.icc is None else _in_srgb(photo)
    image = Image.fromarray(np.ascontiguousarray(upright(to_8_bit(_planes(plain)), photo.orientation)))
    if photo.alpha is None:
        return _save(image, "BMP", dpi=dpi)
    # Pillow cannot read back the alpha it writes, so this writes a header with channel masks (BITMAPV4HEADER).
    image = image.convert("RGBA")
    rows = image.transpose(Image.Transpose.FLIP_TOP_BOTTOM).tobytes("raw", "BGRA")
    per_meter = [round(value / 0.0254) for value in dpi]
    masks = (0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    header = struct.pack("<IiiHHIIiiII", 108, *image.size, 1, 32, 3, len(rows), *per_meter, 0, 0)
    header += struct.pack("<4I", *masks) + b"BGRs" + bytes(48)
    return struct.pack("<2sIII", b"BM", 14 + len(header) + len(rows), 0, 14 + len(header)) + header + rows


def _planes(photo: Photo) -> np.ndarray:
    """(H, W) for gray, else (H, W, 2 to 5): color and alpha."""
    if photo.alpha is None:
        return photo.stored_pixels.squeeze(2) if photo.stored_pixels.shape[2] == 1 else photo.stored_pixels
    return np.concatenate([photo.stored_pixels, photo.alpha[..., None]], axis=2)


def _is_cmyk(photo: Photo) -> bool:
    return bool(photo.stored_pixels.shape[2] == CMYK_CHANNELS)


def _image(photo: Photo) -> Image.Image:
    return Image.fromarray(to_8_bit(_planes(photo)))


def _in_srgb(photo: Photo) -> Photo:
    """The photo with its profile applied, at 8 bits per channel."""
    pixels = np.broadcast_to(to_8_bit(to_srgb(photo.stored_pixels, photo.icc)), (*photo.stored_pixels.shape[:2], 3))
    return replace(photo, stored_pixels=pixels, alpha=None if photo.alpha is None else to_8_bit(photo.alpha), icc=None)


def _without_gray_profile(photo: Photo) -> tuple[Image.Image, dict[str, Any]]:
    """The photo and its metadata for a format that stores gray as RGB, for which a gray profile is invalid."""
    carried = _metadata_arguments(photo)
    if photo.icc is None or photo.stored_pixels.shape[2] == 3:
        return _image(photo), carried
    return _image(_in_srgb(photo)), {name: value for name, value in carried.items() if name != "icc_profile"}


def _flattened(photo: Photo) -> Image.Image:
    """The 8-bit photo on white, without alpha."""
    if _is_cmyk(photo):
        inks = to_8_bit(photo.stored_pixels)
        if photo.alpha is not None:
            inks = np.rint(inks * (to_8_bit(photo.alpha)[..., None] / 255)).astype(np.uint8)
        return cmyk_image(inks)
    image = _image(photo)
    if photo.alpha is None:
        return image
    flat = Image.new("RGBA", image.size, "white")
    flat.alpha_composite(image.convert("RGBA"))
    return flat.convert("RGB" if photo.stored_pixels.shape[2] == 3 else "L")


def _metadata_arguments(photo: Photo) -> dict[str, Any]:
    """The metadata as arguments of Pillow's save."""
    metadata = Metadata.of(photo.data)
    fields = {"exif": metadata.exif, "xmp": metadata.xmp, "icc_profile": metadata.icc, "dpi": metadata.dpi}
    return {name: value for name, value in fields.items() if value}


def _save(image: Image.Image, format: str, **settings: Any) -> bytes:
    buffer = BytesIO()
    image.save(buffer, format, **settings)
    return buffer.getvalue()


def is_lossless(photo: Photo) -> bool:
    """Whether the file of a photo keeps every pixel."""
    return photo.format in ("PNG", "TIFF", "BMP") or (photo.format == "WEBP" and _is_lossless_webp(photo.data))


def _is_lossless_webp(data: bytes) -> bool:
    """Whether a WebP file has its pixels in a VP8L chunk."""
    position = 12
    while position + 8 <= len(data) and data[position : position + 4] not in (b"VP8 ", b"VP8L"):
        (size,) = struct.unpack_from("<I", data, position + 4)
        position += 8 + size + size % 2
    return data[position : position + 4] == b"VP8L"
