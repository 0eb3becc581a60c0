"""Read and write HEIC and HEIF with libheif, through pillow-heif."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
import pillow_heif

from homing.errors import PhotoError
from homing.photo._metadata import Metadata, is_heif
from homing.photo._orientation import upright

_QUALITY, _FINER_QUALITY = 80, 95
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


class Header(NamedTuple):
    """Properties of a file's primary picture, read without decoding it."""

    size: tuple[int, int]
    """Width and height, upright."""
    pictures: int
    """Number of pictures in the file."""
    auxiliary: list[str]
    """Names of the maps that belong to the primary picture: depth, HDR gain map."""
    bits: int
    """Bits per channel."""
    mode: str
    """L, LA, RGB, RGBA or RGBa."""
    chroma: int | None
    """420, 422 or 444."""
    metadata: Metadata
    """EXIF and XMP without an orientation, because libheif turns the pixels upright."""


def header(data: bytes, name: str) -> Header:
    """The header of a HEIF file; nothing is decoded."""
    file = _open(data, name)
    primary = file[file.primary_index]
    depth = ["depth map"] if primary.info["depth_images"] else []
    mode = primary.mode.partition(";")[0].replace("I", "L")
    gain = ["HDR gain map"] if any("gainmap" in kind for kind in primary.info["aux"]) else []
    return Header(
        primary.size,
        len(file),
        depth + gain,
        primary.info["bit_depth"],
        mode,
        primary.info.get("chroma"),
        Metadata.of(data),
    )


def planes(data: bytes, name: str) -> np.ndarray:
    """(H, W) or (H, W, 2 to 4) pixels of the primary picture, upright; 10 and 12 bits become 16."""
    file = _open(data, name)
    primary = file[file.primary_index]
    levels = np.asarray(primary)
    if levels.dtype != np.uint8:
        most = (1 << primary.info["bit_depth"]) - 1
        levels = ((levels.astype(np.uint32) * 65535 + most // 2) // most).astype(np.uint16)
    if primary.premultiplied_alpha:
        white = np.iinfo(levels.dtype).max
        colors, alpha = levels[..., :-1], levels[..., -1:]
        straight = np.rint(colors * (white / np.maximum(alpha, 1))).clip(0, white).astype(levels.dtype)
        levels = np.concatenate([straight, alpha], axis=2)
    return levels


def write(levels: np.ndarray, original: bytes, icc: bytes | None, orientation: int, finer: bool) -> bytes:
    """A HEIF file of (H, W) or (H, W, 2 to 4) pixels with this profile and the metadata of an original file.

    Pixels are written upright; EXIF and XMP hold no orientation.
    """
    metadata, before = Metadata.of(original), _properties(original)
    info: dict[str, Any] = {"exif": metadata.exif, "xmp": metadata.xmp}
    pillow_heif.set_orientation(info)
    carried = {key: value for key, value in {**info, "icc_profile": icc}.items() if value}
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
    oriented = np.ascontiguousarray(upright(levels, orientation))
    buffer = BytesIO()
    pillow_heif.encode(
        mode if bits == 8 else f"{mode};{bits}",
        oriented.shape[1::-1],
        oriented.tobytes(),
        buffer,
        bit_depth=bits,
        quality=_FINER_QUALITY if finer else _QUALITY,
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


def _open(data: bytes, name: str) -> pillow_heif.HeifFile:
    if pillow_heif.get_file_mimetype(data).endswith("-sequence"):
        raise PhotoError(f"{name}: animated or multi-page: one frame is expected, got a sequence")
    return pillow_heif.open_heif(data, convert_hdr_to_8bit=False, hdr_to_16bit=False)
