"""PNG: pixels of 8 and 16 bits with imagecodecs.

Chunks are copied byte by byte, because Pillow drops those it does not know.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import imagecodecs
import numpy as np

from homing.photo._metadata import Metadata
from homing.photo._pixels import planes

if TYPE_CHECKING:
    from homing.photo.photo import Photo

_PIXELS = {b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"}
# Chunks that stay valid after a small change of the pixels or of the color type.
_COPIED = {
    *(b"iCCP", b"sRGB", b"gAMA", b"cHRM", b"cICP", b"mDCV", b"cLLI"),
    *(b"pHYs", b"eXIf", b"iTXt", b"tEXt", b"zTXt", b"tIME", b"sPLT"),
}


def is_16_bit(data: bytes) -> bool:
    """Whether a PNG file stores 16 bits per channel (Pillow silently reduces it to 8)."""
    return data[24] == 16


def exif(data: bytes) -> bytes:
    """The EXIF block of a PNG file, before or after its pixels; empty if there is none."""
    return next((whole[8:-4] for type_, whole in _chunks(data) if type_ == b"eXIf"), b"")


def decode_16_bit(data: bytes) -> np.ndarray:
    """The pixels of a PNG file that stores 16 bits per channel."""
    levels: np.ndarray = imagecodecs.png_decode(data)
    return levels


def encode(photo: Photo, quick: bool) -> bytes:
    """A PNG file with the chunks of a PNG file, or the metadata of another; `quick` compresses less."""
    chunks = _copied_chunks(photo.data) if photo.format == "PNG" else _new_chunks(Metadata.of(photo.data))
    data = bytes(imagecodecs.png_encode(planes(photo), level=1 if quick else None))
    header, *pixels = (whole for type_, whole in _chunks(data) if type_ in _PIXELS)
    return b"".join([data[:8], header, chunks, *pixels])


def _copied_chunks(data: bytes) -> bytes:
    """The chunks that a changed copy of a file keeps, including unknown chunks marked as safe to copy."""
    return b"".join(whole for type_, whole in _chunks(data) if type_ in _COPIED or _is_safe_to_copy(type_))


def _is_safe_to_copy(type_: bytes) -> bool:
    return type_ not in _PIXELS and bool(type_[3] & 32)


def _new_chunks(metadata: Metadata) -> bytes:
    """Chunks for the metadata of a file of another format."""
    made = []
    if metadata.icc:
        made.append((b"iCCP", b"ICC\0\0" + zlib.compress(metadata.icc)))
    if metadata.dpi:
        made.append((b"pHYs", struct.pack(">2IB", *(round(value / 0.0254) for value in metadata.dpi), 1)))
    if metadata.exif:
        made.append((b"eXIf", metadata.exif))
    if metadata.xmp:
        made.append((b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + metadata.xmp))
    return b"".join(
        struct.pack(">I", len(body)) + type_ + body + struct.pack(">I", zlib.crc32(type_ + body))
        for type_, body in made
    )


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The type of each chunk, and all its bytes: length, type, data and checksum."""
    position = 8
    while position + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, position)
        yield data[position + 4 : position + 8], data[position : position + 12 + length]
        position += 12 + length
