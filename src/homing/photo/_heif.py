"""HEIC and HEIF, with libheif through pillow-heif.

Only the primary picture is used, not those of a burst or of a second lens.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pillow_heif

from homing.errors import PhotoError
from homing.photo._metadata import Metadata, is_heif
from homing.photo._pixels import Decoding, Header, in_srgb, planes, straight, upright
from homing.photo.files import QUALITIES

if TYPE_CHECKING:
    from homing.photo.photo import Photo

# Slower presets of x265 take at least four times as long for slightly smaller files.
_PRESET = "ultrafast"
# Properties of a picture that stay valid after a small change of its pixels.
_KEPT = (
    "nclx_profile",
    "pixel_aspect_ratio",
    "content_light_level",
    "mastering_display_colour_volume",
    "ambient_viewing_environment",
    "nominal_diffuse_white_luminance",
)


def open_file(data: bytes, name: str) -> tuple[pillow_heif.HeifFile, pillow_heif.HeifImage]:
    """The file and its primary picture; nothing is decoded."""
    if pillow_heif.get_file_mimetype(data).endswith("-sequence"):
        raise PhotoError(f"{name}: animated or multi-page: one frame is expected, got a sequence")
    file = pillow_heif.open_heif(data, convert_hdr_to_8bit=False, hdr_to_16bit=False)
    return file, file[file.primary_index]


def header(data: bytes, name: str) -> Header:
    """The size of the primary picture, upright."""
    _, primary = open_file(data, name)
    return Header("HEIC", primary.size, frames=1)


def decode(data: bytes, name: str) -> Decoding:
    """The primary picture, which libheif turns upright; 10 and 12 bits become 16."""
    _, primary = open_file(data, name)
    levels = np.asarray(primary)
    if levels.dtype != np.uint8:
        most = (1 << primary.info["bit_depth"]) - 1
        levels = ((levels.astype(np.uint32) * 65535 + most // 2) // most).astype(np.uint16)
    if primary.premultiplied_alpha:
        alpha = levels[..., -1:]
        levels = np.concatenate([straight(levels[..., :-1], alpha), alpha], axis=2)
    return Decoding(levels, icc=primary.info.get("icc_profile"))


def encode(photo: Photo, finer: bool) -> bytes:
    """A HEIF file with the metadata of the original; pixels are written upright, EXIF and XMP hold no orientation."""
    # Gray with alpha is decoded as RGB, for which a gray profile is invalid.
    plain = in_srgb(photo) if photo.icc and photo.alpha is not None and photo.stored_pixels.shape[2] == 1 else photo
    levels, metadata, before = planes(plain), Metadata.of(photo.data), _properties(photo.data)
    info: dict[str, Any] = {"exif": metadata.exif, "xmp": metadata.xmp}
    pillow_heif.set_orientation(info)
    carried = {key: value for key, value in {**info, "icc_profile": plain.icc}.items() if value}
    carried |= {key: before[key] for key in _KEPT if key in before}
    tiles = before.get("tiling", {})
    if tiles and tiles["tile_width"] == tiles["tile_height"]:
        carried["tile_size"] = tiles["tile_width"]
    bits = 8
    if levels.dtype != np.uint8:
        bits = 12 if before.get("bit_depth") == 12 else 10
        most = (1 << bits) - 1
        levels = ((levels.astype(np.uint32) * most + 32767) // 65535).astype(np.uint16)
    mode = {2: "LA", 3: "RGB", 4: "RGBA"}[levels.shape[2]] if levels.ndim == 3 else "L"
    oriented = np.ascontiguousarray(upright(levels, photo.orientation))
    buffer = BytesIO()
    pillow_heif.encode(
        mode if bits == 8 else f"{mode};{bits}",
        oriented.shape[1::-1],
        oriented.tobytes(),
        buffer,
        bit_depth=bits,
        quality=QUALITIES["HEIC"][finer],
        chroma=444 if finer else before.get("chroma", 420),
        enc_params={"preset": _PRESET},
        **carried,
    )
    return buffer.getvalue()


def _properties(original: bytes) -> Mapping[str, Any]:
    """The properties of the primary picture of an original file; empty if it is not a HEIF file."""
    if not is_heif(original):
        return {}
    file = pillow_heif.open_heif(original)
    info: Mapping[str, Any] = file[file.primary_index].info
    return info
