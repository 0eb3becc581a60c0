"""Read and write PNG chunks, and pixels of 8 and 16 bits."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import imagecodecs
import numpy as np

from homing.photo._metadata import Metadata

_PIXELS = {b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"}
# Chunks that stay valid after a small change of the pixels or of the color type.
_COPIED = {
    *(b"iCCP", b"sRGB", b"gAMA", b"cHRM", b"cICP", b"mDCV", b"cLLI"),
    *(b"pHYs", b"eXIf", b"iTXt", b"tEXt", b"zTXt", b"tIME", b"sPLT"),
}


class _Chunk(NamedTuple):
    type: bytes
    whole: bytes
    """Length, type, data and checksum."""


def is_16_bit(data: bytes) -> bool:
    """Whether a PNG file stores 16 bits per channel (Pillow silently reduces it to 8)."""
    return data[24] == 16


def exif(data: bytes) -> bytes:
    """The EXIF block of a PNG file, before or after its pixels; empty if there is none."""
    return next((chunk.whole[8:-4] for chunk in _chunks(data) if chunk.type == b"eXIf"), b"")


def copied_chunks(data: bytes) -> bytes:
    """The chunks that a changed copy of a file keeps, including unknown chunks marked as safe to copy."""
    return b"".join(c.whole for c in _chunks(data) if c.type in _COPIED or (c.type not in _PIXELS and c.type[3] & 32))


def new_chunks(metadata: Metadata) -> bytes:
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


def write(planes: np.ndarray, chunks: bytes, quick: bool) -> bytes:
    """A PNG file of (H, W) or (H, W, 2 to 4) pixels with these chunks."""
    data = bytes(imagecodecs.png_encode(planes, level=1 if quick else None))
    header, *pixels = (chunk.whole for chunk in _chunks(data) if chunk.type in _PIXELS)
    return b"".join(chain([data[:8], header, chunks], pixels))


def _chunks(data: bytes) -> Iterator[_Chunk]:
    position = 8
    while position + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, position)
        yield _Chunk(data[position + 4 : position + 8], data[position : position + 12 + length])
        position += 12 + length
