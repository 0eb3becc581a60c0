"""Decode the bytes of a file, by format; errors are one line each.

HEIC is read with libheif, TIFF with tifffile, which keeps 16 bits, the other formats with Pillow.
"""

from __future__ import annotations

import logging
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import NamedTuple

import imagecodecs
import numpy as np
import pillow_heif
import tifffile
from PIL import Image, UnidentifiedImageError

from homing._io.paths import one_line
from homing.errors import PhotoError, TooLargeError, UnsupportedError
from homing.photo._metadata import CMYK, ICC, Directory, is_heif, is_tiff
from homing.photo._pixels import CMYK_CHANNELS, mode_of, stored, straight, usable_profile
from homing.photo.files import SUFFIXES, display_format

SMALLEST = 32

# Pillow, tifffile and imagecodecs document no error classes for damaged files; their parsers raise all of these.
# (tifffile.TiffFileError is a ValueError, the codec errors of imagecodecs are RuntimeErrors.)
DECODE_ERRORS = (
    *(OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error),
    *(LookupError, TypeError, ArithmeticError, RuntimeError, MemoryError),
)

# These libraries log minor faults of a file to stderr. Real problems are also raised as errors.
for _library in ("PIL", "tifffile"):
    logging.getLogger(_library).addHandler(logging.NullHandler())

_SUPPORTED = f"supported: {', '.join(map(display_format, SUFFIXES))}"
_ANIMATED = "animated or multi-page: one frame is expected, got"
_PILLOW_FORMATS = ("JPEG", "PNG", "WEBP", "AVIF", "BMP", "GIF")  # GIF is opened only to name it in the error
_GRAY_ON_WHITE, _GRAY, _RGB = 0, 1, 2  # kinds of TIFF files
_ASSOCIATED, _UNASSOCIATED = 1, 2
_SEPARATE = 2


class Decoded(NamedTuple):
    """The fields of a Photo that are decoded from its bytes, in the order of its constructor."""

    stored_pixels: np.ndarray
    alpha: np.ndarray | None
    format: str
    orientation: int
    icc: bytes | None


class _Header(NamedTuple):
    format: str
    size: tuple[int, int]
    """Width and height."""
    frames: int


class _Pixels(NamedTuple):
    levels: np.ndarray
    """(H, W) or (H, W, 2 to 5): gray, RGB or CMYK, and alpha, of 8 or 16 bits."""
    cmyk: bool
    orientation: int
    icc: bytes | None


def decode(data: bytes, name: str) -> Decoded:
    """Decode the bytes of a file; `name` is used in messages."""
    with _one_line_errors(data, name):
        header = _checked_header(data, name)
        _check_pixel_count(header.size)
        decoder = _tiff_pixels if is_tiff(data) else _heif_pixels if is_heif(data) else _pillow_pixels
        levels, cmyk, orientation, icc = decoder(data, name)
        levels = levels if levels.ndim == 3 else levels[..., None]
        colors = CMYK_CHANNELS if cmyk else 3 if levels.shape[2] > 2 else 1
        alpha = levels[..., colors].copy() if levels.shape[2] > colors else None
        profile = usable_profile(icc, mode_of(colors), name)
        return Decoded(np.ascontiguousarray(levels[..., :colors]), alpha, header.format, orientation, profile)


def image_size(data: bytes, name: str) -> tuple[int, int]:
    """Width and height from the header of a file; no pixel is decoded."""
    with _one_line_errors(data, name):
        return _header(data, name).size


def file_format(data: bytes, name: str) -> str:
    """The format of a photo's file, a key of `SUFFIXES`, from its header; PhotoError if it is not a photo."""
    with _one_line_errors(data, name):
        return _checked_header(data, name).format


@contextmanager
def _one_line_errors(data: bytes, name: str) -> Iterator[None]:
    """Turn the errors of decoding libraries into a PhotoError of one line."""
    if not data:
        raise PhotoError(f"{name}: empty file")
    try:
        yield
    except UnidentifiedImageError as error:
        raise UnsupportedError(f"{name}: not a photo, or its header is damaged; {_SUPPORTED}") from error
    except Image.DecompressionBombError as error:
        raise TooLargeError(f"{name}: too large: {one_line(error)}") from error
    except DECODE_ERRORS as error:
        raise PhotoError(f"{name}: damaged: {one_line(error)}") from error


def _checked_header(data: bytes, name: str) -> _Header:
    """The header of a file; several frames, unsupported formats and small images are refused."""
    header = _header(data, name)
    if header.frames > 1:
        raise PhotoError(f"{name}: {_ANIMATED} {header.frames}")
    if header.format not in SUFFIXES:
        raise UnsupportedError(f"{name}: {header.format} is not supported; {_SUPPORTED}")
    check_size(*header.size, name)
    return header


def check_size(width: int, height: int, name: str) -> None:
    """Raise PhotoError if a photo is too small to recognize."""
    if min(width, height) < SMALLEST:
        raise PhotoError(f"{name}: too small to recognize: {width}×{height}, at least {SMALLEST}×{SMALLEST} is needed")


def _check_pixel_count(size: tuple[int, int]) -> None:
    """Refuse images with more pixels than Pillow decodes."""
    limit = Image.MAX_IMAGE_PIXELS
    if limit is not None and size[0] * size[1] > 2 * limit:
        raise Image.DecompressionBombError(f"{size[0]}×{size[1]}, at most {2 * limit} pixels are decoded")


def _header(data: bytes, name: str) -> _Header:
    """What the header of a file says; no pixel is decoded."""
    if is_tiff(data):
        with tifffile.TiffFile(BytesIO(data)) as file:
            page = file.pages.first
            return _Header("TIFF", (int(page.imagewidth), int(page.imagelength)), len(file.pages))
    if is_heif(data):
        _, primary = open_heif(data, name)
        return _Header("HEIC", primary.size, frames=1)
    with Image.open(BytesIO(data), formats=_PILLOW_FORMATS) as image:
        # The other pictures of an MPO are previews, or the second view of a stereo camera.
        format = "JPEG" if image.format == "MPO" else str(image.format)
        return _Header(format, image.size, 1 if format == "JPEG" else getattr(image, "n_frames", 1))


def open_heif(data: bytes, name: str) -> tuple[pillow_heif.HeifFile, pillow_heif.HeifImage]:
    """A HEIF file and its primary picture, the only one that is used; nothing is decoded."""
    if pillow_heif.get_file_mimetype(data).endswith("-sequence"):
        raise PhotoError(f"{name}: {_ANIMATED} a sequence")
    file = pillow_heif.open_heif(data, convert_hdr_to_8bit=False, hdr_to_16bit=False)
    return file, file[file.primary_index]


def _heif_pixels(data: bytes, name: str) -> _Pixels:
    """The primary picture, which libheif turns upright; 10 and 12 bits become 16."""
    _, primary = open_heif(data, name)
    levels = np.asarray(primary)
    if levels.dtype != np.uint8:
        most = (1 << primary.info["bit_depth"]) - 1
        levels = ((levels.astype(np.uint32) * 65535 + most // 2) // most).astype(np.uint16)
    if primary.premultiplied_alpha:
        alpha = levels[..., -1:]
        levels = np.concatenate([straight(levels[..., :-1], alpha), alpha], axis=2)
    return _Pixels(levels, cmyk=False, orientation=1, icc=primary.info.get("icc_profile"))


def _pillow_pixels(data: bytes, name: str) -> _Pixels:
    """The pixels; those of 16 bits with imagecodecs, because Pillow reduces them to 8."""
    with Image.open(BytesIO(data), formats=_PILLOW_FORMATS) as image:
        if image.format == "PNG":
            exif = next((whole[8:-4] for type_, whole in png_chunks(data) if type_ == b"eXIf"), b"")
        else:
            exif = image.info.get("exif", b"")
        is_deep = image.format == "PNG" and is_16_bit_png(data)
        levels = imagecodecs.png_decode(data) if is_deep else _image_planes(image, name)
        icc = image.info.get("icc_profile")
        return _Pixels(levels, image.mode == "CMYK", Directory.read(exif).orientation(), icc)


def _image_planes(image: Image.Image, name: str) -> np.ndarray:
    """An opened image as 8-bit planes: gray, RGB or CMYK, with alpha where something is transparent."""
    image.load()
    gray, color = image.mode in ("1", "L", "LA"), image.mode in ("P", "PA", "RGB", "RGBA", "RGBX", "YCbCr")
    if image.mode == "CMYK":
        return np.asarray(image)
    if not (gray or color):
        raise PhotoError(f"{name}: 8 or 16 bits per channel, gray or color, are expected; got mode {image.mode}")
    target = ("L" if gray else "RGB") + ("A" if image.has_transparency_data else "")
    return np.asarray(image if image.mode == target else image.convert(target))


def is_16_bit_png(data: bytes) -> bool:
    """Whether a PNG file stores 16 bits per channel."""
    return data[24] == 16


def png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The type of each chunk of a PNG file, and all its bytes: length, type, data and checksum."""
    position = 8
    while position + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, position)
        yield data[position + 4 : position + 8], data[position : position + 12 + length]
        position += 12 + length


def is_lossless_webp(data: bytes) -> bool:
    """Whether a WebP file has its pixels in a VP8L chunk."""
    position = 12
    while position + 8 <= len(data) and data[position : position + 4] not in (b"VP8 ", b"VP8L"):
        (size,) = struct.unpack_from("<I", data, position + 4)
        position += 8 + size + size % 2
    return data[position : position + 4] == b"VP8L"


def _tiff_pixels(data: bytes, name: str) -> _Pixels:
    """The first page, with tifffile; palette, 1 bit and YCbCr with Pillow."""
    with tifffile.TiffFile(BytesIO(data)) as file:
        page, tags = file.pages.first, Directory.read(data)
        plain = (
            page.photometric in (_GRAY_ON_WHITE, _GRAY, _RGB, CMYK)
            and (page.bitspersample, page.dtype) in ((8, np.uint8), (16, np.uint16))
            and page.samplesperpixel <= 5
            and (page.photometric != CMYK or page.samplesperpixel >= 4)
            and page.imagedepth == 1
        )
        if plain:
            levels = _tiff_levels(page)
        else:
            with Image.open(BytesIO(data), formats=["TIFF"]) as image:
                # Pillow turns TIFF files upright when it loads them.
                levels = stored(_image_planes(image, name), tags.orientation())
        return _Pixels(levels, page.photometric == CMYK, tags.orientation(), tags.value(ICC))


def _tiff_levels(page: tifffile.TiffPage) -> np.ndarray:
    """(H, W, 1 to 5): gray, RGB or CMYK of 8 or 16 bits, and alpha if an extra channel is marked as alpha."""
    levels: np.ndarray = page.asarray()
    if page.planarconfig == _SEPARATE and page.samplesperpixel > 1:
        levels = np.moveaxis(levels, 0, -1)
    levels = levels.reshape(page.imagelength, page.imagewidth, page.samplesperpixel)
    colors = {_RGB: 3, CMYK: 4}.get(page.photometric, 1)
    color, extra = levels[..., :colors], levels[..., colors:]
    if page.photometric == _GRAY_ON_WHITE:
        color = np.iinfo(levels.dtype).max - color
    kinds = [int(kind) for kind in page.extrasamples][: extra.shape[2]]
    index = next((i for i, kind in enumerate(kinds) if kind in (_ASSOCIATED, _UNASSOCIATED)), None)
    if index is None:
        return color
    alpha = extra[..., index, None]
    if kinds[index] == _ASSOCIATED:
        color = straight(color, alpha)
    return np.concatenate([color, alpha], axis=2)
