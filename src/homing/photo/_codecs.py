"""Decode the bytes of a file and encode a photo, by format; errors are one line each."""

from __future__ import annotations

import logging
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from PIL import Image, UnidentifiedImageError

from homing._io.paths import one_line
from homing.errors import PhotoError, TooLargeError, UnsupportedError
from homing.photo import _heif, _jpeg, _pillow, _png, _tiff
from homing.photo._metadata import is_heif, is_tiff
from homing.photo._pixels import CMYK_CHANNELS, Decoding, Header, in_srgb, is_cmyk, mode_of, usable_profile
from homing.photo.files import SUFFIXES, display_format

if TYPE_CHECKING:
    from homing.photo.photo import Photo

SMALLEST = 32

CMYK_FORMATS = ("JPEG", "TIFF")
"""The formats that hold CMYK; in others it becomes sRGB."""

# Pillow, tifffile and imagecodecs document no error classes for damaged files; their parsers raise all of these.
# (tifffile.TiffFileError is a ValueError, the codec errors of imagecodecs are RuntimeErrors.)
DECODE_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    struct.error,
    zlib.error,
    LookupError,
    TypeError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
)

# These libraries log minor faults of a file to stderr. Real problems are also raised as errors.
for _library in ("PIL", "tifffile"):
    logging.getLogger(_library).addHandler(logging.NullHandler())

_SUPPORTED = f"supported: {', '.join(map(display_format, SUFFIXES))}"


class Decoded(NamedTuple):
    """The fields of a Photo that are decoded from its bytes, in the order of its constructor."""

    stored_pixels: np.ndarray
    alpha: np.ndarray | None
    format: str
    orientation: int
    icc: bytes | None


class Codec(Protocol):
    """What decodes a file: a module of this package."""

    def header(self, data: bytes, name: str, /) -> Header:
        """What the header says; no pixel is decoded."""

    def decode(self, data: bytes, name: str, /) -> Decoding:
        """The pixels."""


def decode(data: bytes, name: str) -> Decoded:
    """Decode the bytes of a file; `name` is used in messages."""
    with _one_line_errors(data, name):
        header = _checked_header(data, name)
        _check_pixel_count(header.size)
        levels, cmyk, orientation, icc = _codec(data).decode(data, name)
        levels = levels if levels.ndim == 3 else levels[..., None]
        colors = CMYK_CHANNELS if cmyk else 3 if levels.shape[2] > 2 else 1
        alpha = levels[..., colors].copy() if levels.shape[2] > colors else None
        profile = usable_profile(icc, mode_of(colors), name)
        return Decoded(np.ascontiguousarray(levels[..., :colors]), alpha, header.format, orientation, profile)


def image_size(data: bytes, name: str) -> tuple[int, int]:
    """Width and height from the header of a file; no pixel is decoded."""
    with _one_line_errors(data, name):
        return _codec(data).header(data, name).size


def file_format(data: bytes, name: str) -> str:
    """The format of a photo's file, a key of `SUFFIXES`, from its header; PhotoError if it is not a photo."""
    with _one_line_errors(data, name):
        return _checked_header(data, name).format


def _codec(data: bytes) -> Codec:
    return _tiff if is_tiff(data) else _heif if is_heif(data) else _pillow


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


def _checked_header(data: bytes, name: str) -> Header:
    """The header of a file; several frames, unsupported formats and small images are refused."""
    header = _codec(data).header(data, name)
    if header.frames > 1:
        raise PhotoError(f"{name}: animated or multi-page: one frame is expected, got {header.frames}")
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


def encode(photo: Photo, format: str, finer: bool, quick: bool) -> bytes:
    """The bytes of a file in `format`, a key of `SUFFIXES`."""
    if is_cmyk(photo) and format not in CMYK_FORMATS:
        photo = in_srgb(photo)
    try:
        match format:
            case "PNG":
                return _png.encode(photo, quick)
            case "TIFF":
                return _tiff.encode(photo)
            case "BMP":
                return _pillow.encode_bmp(photo)
            case _:
                lossy = {"JPEG": _jpeg.encode, "HEIC": _heif.encode}
                lossy |= {"WEBP": _pillow.encode_webp, "AVIF": _pillow.encode_avif}
                return lossy[format](photo, finer)
    except DECODE_ERRORS as error:
        raise PhotoError(f"{photo.name}: cannot be written as {display_format(format)}: {one_line(error)}") from error


def is_lossless(photo: Photo) -> bool:
    """Whether the file of a photo keeps every pixel."""
    lossless_webp = photo.format == "WEBP" and _pillow.is_lossless_webp(photo.data)
    return photo.format in ("PNG", "TIFF", "BMP") or lossless_webp
