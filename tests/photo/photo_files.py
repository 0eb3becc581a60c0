"""Photo files made in memory."""

from __future__ import annotations

import struct
import zlib
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pillow_heif
import tifffile
from PIL import Image, ImageCms
from torch import Tensor

from homing.photo import Photo, apply_changes

CAMERA = Path(__file__).parents[3] / "shared" / "photos" / "camera"


def changed_photo(photo: Photo, change: Tensor) -> Photo:
    """The photo with a change (3, H, W) added to it."""
    (changed,) = apply_changes([photo], [change])
    return changed


def noise(*shape: int, dtype: Any = np.uint8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def scene(height: int = 96, width: int = 128) -> np.ndarray:
    """Smooth colors with some detail, like a photo: (H, W, 3), uint8."""
    small = Image.fromarray(noise(12, 16, 3)).resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(small)


def saved(array: np.ndarray, format: str, mode: str | None = None, **settings: Any) -> bytes:
    image = Image.fromarray(array)
    image = image.convert(mode) if mode else image
    buffer = BytesIO()
    if format == "HEIC":
        pillow_heif.from_pillow(image).save(buffer, **settings)
    else:
        image.save(buffer, format, **settings)
    return buffer.getvalue()


def lossless(array: np.ndarray, format: str) -> bytes:
    """A PNG or TIFF file of 8 or 16 bits, 1 to 4 channels."""
    planes = array.squeeze(2) if array.ndim == 3 and array.shape[2] == 1 else array
    if format == "PNG":
        return bytes(imagecodecs.png_encode(planes))
    channels = planes.shape[2] if planes.ndim == 3 else 1
    buffer = BytesIO()
    tifffile.imwrite(
        buffer,
        planes,
        photometric="rgb" if channels > 2 else "minisblack",
        planarconfig="contig" if channels > 1 else None,
        extrasamples=["unassalpha"] if channels in (2, 4) else None,
        metadata=None,
    )
    return buffer.getvalue()


def exif(orientation: int) -> bytes:
    block = Image.Exif()
    block[274] = orientation
    block[272] = "Camera"
    block.get_ifd(34665)[33434] = (1, 250)
    block.get_ifd(34853)[1] = "N"
    return block.tobytes()


def chunk(type_: bytes, body: bytes) -> bytes:
    """A PNG chunk."""
    return struct.pack(">I", len(body)) + type_ + body + struct.pack(">I", zlib.crc32(type_ + body))


def opened(data: bytes) -> Image.Image:
    return Image.open(BytesIO(data))


@cache  # LittleCMS writes the current time into the profile
def wide_gamut() -> bytes:
    """A matrix profile other than sRGB: sRGB of LittleCMS with swapped red and green primaries, and renamed."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    for row in range(struct.unpack_from(">I", profile, 128)[0]):
        at = 132 + 12 * row
        tag = bytes(profile[at : at + 4])
        profile[at : at + 4] = {b"rXYZ": b"gXYZ", b"gXYZ": b"rXYZ"}.get(tag, tag)
    return bytes(profile).replace("sRGB".encode("utf-16-be"), "Wide".encode("utf-16-be"))


def gray_profile() -> bytes:
    """A gray profile with gamma 1."""
    return _profile(b"mntr", b"GRAY", b"XYZ ", {b"kTRC": b"curv" + struct.pack(">2IH", 0, 1, 256)})


def cmyk_profile() -> bytes:
    """A CMYK profile where every ink is gray: more ink is darker."""
    ramp = bytes(range(256))
    corners = b"".join(bytes([255 - 60 * bin(corner).count("1"), 128, 128]) for corner in range(16))
    identity = struct.pack(">9i", *(65536 * (i % 4 == 0) for i in range(9)))
    table = b"mft1" + bytes(4) + bytes([4, 3, 2, 0]) + identity + ramp * 4 + corners + ramp * 3
    return _profile(b"prtr", b"CMYK", b"Lab ", {b"A2B0": table})


def _profile(kind: bytes, space: bytes, connection: bytes, tags: dict[bytes, bytes]) -> bytes:
    """An ICC profile, version 2."""
    white = struct.pack(">3i", 63190, 65536, 54061)
    name = b"desc" + struct.pack(">2I", 0, 5) + b"Test\0" + bytes(78)
    tags = {b"desc": name, b"wtpt": b"XYZ " + bytes(4) + white, **tags}
    offset, table, body = 132 + 12 * len(tags), struct.pack(">I", len(tags)), b""
    for tag, value in tags.items():
        table += tag + struct.pack(">2I", offset + len(body), len(value))
        body += value + bytes(-len(value) % 4)
    header = struct.pack(">2I", offset + len(body), 0) + b"\x02\x40\0\0" + kind + space + connection
    return header + bytes(12) + b"acsp" + bytes(28) + white + bytes(48) + table + body


def heic_of_10_bits(bits: int = 10) -> bytes:
    """A HEIC file of 10 or 12 bits per channel: a scene from black to white."""
    levels = scene().astype(np.uint32)
    levels = ((levels - levels.min()) * 65535 // np.ptp(levels)).astype(np.uint16)
    buffer = BytesIO()
    size = levels.shape[1::-1]
    pillow_heif.encode("RGB;16", size, levels.tobytes(), buffer, bit_depth=bits, quality=95, chroma=444)
    return buffer.getvalue()
