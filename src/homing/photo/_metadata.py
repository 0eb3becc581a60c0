"""Metadata of a file in a form that can be written to other formats."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO

import pillow_heif
from PIL import Image

from homing.photo._ifd import ICC, PHOTOMETRIC, XMP, Directory

# Tags that describe how a TIFF file stores its pixels, or that hold other pixels (thumbnails, layers).
LAYOUT = frozenset(
    {*range(254, 260), 262, 263, *range(264, 267), 273, 277, 278, 279, 284, *range(288, 293), 301, 317, 318, 319, 320}
    | {*range(321, 326), 330, 332, 334, 336, 338, 339, 340, 341, 347, *range(512, 522), *range(529, 533), 37724}
)
CMYK = 5
_HEIC = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs")
_IPTC, _PHOTOSHOP = 33723, 34377


@dataclass(frozen=True)
class Metadata:
    """EXIF as a TIFF stream, XMP, color profile, and dots per inch."""

    exif: bytes | None
    xmp: bytes | None
    icc: bytes | None
    dpi: tuple[float, float] | None

    @classmethod
    def of(cls, data: bytes) -> Metadata:
        """The metadata of a file's bytes; a CMYK profile is omitted, because most formats do not support CMYK."""
        if is_tiff(data):
            tags = Directory.read(data)
            described = tags.without(LAYOUT | {XMP, ICC, _IPTC, _PHOTOSHOP})
            icc = None if tags.number(PHOTOMETRIC) == CMYK else tags.value(ICC)
            return cls(described.exif() if described.entries else None, tags.value(XMP), icc, _sensible(tags.dpi()))
        if is_heif(data):
            file = pillow_heif.open_heif(data)
            info = file[file.primary_index].info
            pillow_heif.set_orientation(info)
            exif = (info["exif"] or b"").removeprefix(b"Exif\0\0")
            return cls(exif or None, info.get("xmp"), info.get("icc_profile"), None)
        with Image.open(BytesIO(data)) as image:
            if image.format == "PNG":
                image.load()  # metadata chunks may follow the pixels
            info = image.info
            exif = info.get("exif", b"").removeprefix(b"Exif\0\0")
            icc = None if image.mode == "CMYK" else info.get("icc_profile")
            return cls(exif or None, info.get("xmp"), icc, _sensible(info.get("dpi")))


def _sensible(dpi: tuple[float, float] | None) -> tuple[float, float] | None:
    """The resolution, if every format can store it."""
    return (float(dpi[0]), float(dpi[1])) if dpi and all(1 <= value <= 60_000 for value in dpi) else None


def is_tiff(data: bytes) -> bool:
    """Whether these are the bytes of a TIFF file, BigTIFF included."""
    return data[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def is_heif(data: bytes) -> bool:
    """Whether these are the bytes of a HEIC or HEIF file; AVIF has its own decoder."""
    if data[4:8] != b"ftyp":
        return False
    brands = data[16 : int.from_bytes(data[:4], "big")]
    compatible = {brands[at : at + 4] for at in range(0, len(brands), 4)}
    return data[8:12] in _HEIC or (data[8:12] in (b"mif1", b"msf1") and b"avif" not in compatible)
