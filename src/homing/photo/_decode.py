"""Decode the bytes of a file to pixels; errors are one line each."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import NamedTuple

import imagecodecs
import numpy as np
import tifffile
from PIL import Image, UnidentifiedImageError

from homing.errors import PhotoError, TooLargeError, UnsupportedError
from homing.photo import _color, _heif, _png, _tiff
from homing.photo._errors import DECODE_ERRORS, reason
from homing.photo._ifd import ICC, ORIENTATION, Directory
from homing.photo._metadata import CMYK, is_heif, is_tiff
from homing.photo._orientation import stored
from homing.photo.formats import SUFFIXES

SMALLEST = 32

# These libraries log minor faults of a file to stderr. Real problems are also raised as errors.
for _library in ("PIL", "tifffile"):
    logging.getLogger(_library).addHandler(logging.NullHandler())

_SUPPORTED = f"supported: {', '.join(SUFFIXES)}"
# GIF is opened only to name it in the error.
_PILLOW_FORMATS = ("JPEG", "PNG", "WEBP", "AVIF", "BMP", "GIF")


class Decoded(NamedTuple):
    """The fields of a Photo that are decoded from its bytes, in the order of its constructor."""

    stored_pixels: np.ndarray
    alpha: np.ndarray | None
    format: str
    orientation: int
    icc: bytes | None


def decode(data: bytes, name: str) -> Decoded:
    """Decode the bytes of a file; `name` is used in messages."""
    with _one_line_errors(data, name):
        if is_tiff(data):
            return _tiff_file(data, name)
        return _heif_file(data, name) if is_heif(data) else _other_file(data, name)


def image_size(data: bytes, name: str) -> tuple[int, int]:
    """Width and height from the header of a file; no pixel is decoded."""
    with _one_line_errors(data, name):
        if is_tiff(data):
            with tifffile.TiffFile(BytesIO(data)) as file:
                page = file.pages.first
                return int(page.imagewidth), int(page.imagelength)
        if is_heif(data):
            return _heif.header(data, name).size
        with Image.open(BytesIO(data), formats=_PILLOW_FORMATS) as image:
            return image.width, image.height


def file_format(data: bytes, name: str) -> str:
    """The format of a photo's file, a key of `SUFFIXES`, from its header; PhotoError if it is not a photo."""
    with _one_line_errors(data, name):
        if is_tiff(data):
            with tifffile.TiffFile(BytesIO(data)) as file:
                page = file.pages.first
                _check(name, "TIFF", (page.imagewidth, page.imagelength), len(file.pages))
            return "TIFF"
        if is_heif(data):
            _check(name, "HEIC", _heif.header(data, name).size, frames=1)
            return "HEIC"
        with Image.open(BytesIO(data), formats=_PILLOW_FORMATS) as image:
            format, frames = _format_and_frames(image)
            _check(name, format, image.size, frames)
            return format


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
        raise TooLargeError(f"{name}: too large: {reason(error)}") from error
    except DECODE_ERRORS as error:
        raise PhotoError(f"{name}: damaged: {reason(error)}") from error


def _other_file(data: bytes, name: str) -> Decoded:
    """Decode JPEG, PNG, WebP, AVIF and BMP. Opening reads only the header, and refuses images that are too large."""
    with Image.open(BytesIO(data), formats=_PILLOW_FORMATS) as image:
        format, frames = _format_and_frames(image)
        _check(name, format, image.size, frames)
        icc = image.info.get("icc_profile")
        exif = _png.exif(data) if format == "PNG" else image.info.get("exif", b"")
        orientation = _orientation(Directory.read(exif))
        deep = format == "PNG" and _png.is_16_bit(data)
        planes = imagecodecs.png_decode(data) if deep else _planes(image, name)
        colors = 4 if image.mode == "CMYK" else None
    return _decoded(planes, format, orientation, icc, name, colors)


def _format_and_frames(image: Image.Image) -> tuple[str, int]:
    # The other pictures of an MPO are previews, or the second view of a stereo camera.
    format = "JPEG" if image.format == "MPO" else str(image.format)
    return format, 1 if format == "JPEG" else getattr(image, "n_frames", 1)


def _heif_file(data: bytes, name: str) -> Decoded:
    """Decode HEIC and HEIF. Only the primary picture is used, not those of a burst or of a second lens."""
    header = _heif.header(data, name)
    _check(name, "HEIC", header.size, frames=1)
    _check_pixels(header.size)
    return _decoded(_heif.planes(data, name), "HEIC", 1, header.metadata.icc, name)


def _tiff_file(data: bytes, name: str) -> Decoded:
    """Decode TIFF with tifffile, which keeps 16 bits; palette, 1 bit and YCbCr with Pillow."""
    with tifffile.TiffFile(BytesIO(data)) as file:
        page = file.pages.first
        size = (page.imagewidth, page.imagelength)
        _check(name, "TIFF", size, len(file.pages))
        _check_pixels(size)
        tags = Directory.read(data)
        orientation, icc = _orientation(tags), tags.value(ICC)
        if _tiff.is_plain(page):
            planes = _tiff.planes(page)
        else:
            with Image.open(BytesIO(data), formats=["TIFF"]) as image:
                # Pillow turns TIFF files upright when it loads them.
                planes = stored(_planes(image, name), orientation)
        colors = 4 if page.photometric == CMYK else None
    return _decoded(planes, "TIFF", orientation, icc, name, colors)


def _planes(image: Image.Image, name: str) -> np.ndarray:
    """An opened image as 8-bit planes: gray, RGB or CMYK, with alpha where something is transparent."""
    image.load()
    gray, color = image.mode in ("1", "L", "LA"), image.mode in ("P", "PA", "RGB", "RGBA", "RGBX", "YCbCr")
    if image.mode == "CMYK":
        return np.asarray(image)
    if not (gray or color):
        raise PhotoError(f"{name}: 8 or 16 bits per channel, gray or color, are expected; got mode {image.mode}")
    target = ("L" if gray else "RGB") + ("A" if image.has_transparency_data else "")
    return np.asarray(image if image.mode == target else image.convert(target))


def _decoded(
    planes: np.ndarray, format: str, orientation: int, icc: bytes | None, name: str, colors: int | None = None
) -> Decoded:
    """Planes split into color channels and alpha; `colors` is given where it is not 1 or 3."""
    planes = planes if planes.ndim == 3 else planes[..., None]
    colors = colors or (3 if planes.shape[2] > 2 else 1)
    alpha = planes[..., colors].copy() if planes.shape[2] > colors else None
    profile = _color.usable_profile(icc, _color.mode_of(colors), name)
    return Decoded(np.ascontiguousarray(planes[..., :colors]), alpha, format, orientation, profile)


def _check(name: str, format: str, size: tuple[int, int], frames: int) -> None:
    """Refuse several frames, unsupported formats and small images, from the header alone."""
    if frames > 1:
        raise PhotoError(f"{name}: animated or multi-page: one frame is expected, got {frames}")
    if format not in SUFFIXES:
        raise UnsupportedError(f"{name}: {format} is not supported; {_SUPPORTED}")
    if min(size) < SMALLEST:
        needed = f"at least {SMALLEST}×{SMALLEST} is needed"
        raise PhotoError(f"{name}: too small to recognize: {size[0]}×{size[1]}, {needed}")


def _check_pixels(size: tuple[int, int]) -> None:
    """Refuse images with more pixels than Pillow decodes."""
    limit = Image.MAX_IMAGE_PIXELS
    if limit is not None and size[0] * size[1] > 2 * limit:
        raise Image.DecompressionBombError(f"{size[0]}×{size[1]}, at most {2 * limit} pixels are decoded")


def _orientation(tags: Directory) -> int:
    value = tags.number(ORIENTATION) or 1
    return value if value <= 8 else 1
