"""Metadata of files: what can be written to other formats, and TIFF directories, copied entry by entry.

Directories (of TIFF files and EXIF blocks) are read and written by hand: libraries interpret the values, and lose or
change what they do not know, such as maker notes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import pillow_heif
from PIL import Image

EXIF, GPS, INTEROPERABILITY = 34665, 34853, 40965
COMPRESSION, PHOTOMETRIC, ORIENTATION = 259, 262, 274
X_RESOLUTION, Y_RESOLUTION, RESOLUTION_UNIT = 282, 283, 296
XMP, ICC = 700, 34675

_BYTE, _SHORT, _LONG, _RATIONAL, _UNDEFINED = 1, 3, 4, 5, 7
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 18: 8}
_LAST_VALUE = 12  # the types above it are offsets, and those of BigTIFF
_POINTERS = {EXIF, GPS, INTEROPERABILITY}

# Tags that describe how a TIFF file stores its pixels, or that hold other pixels (thumbnails, layers).
LAYOUT = frozenset(
    {*range(254, 260), 262, 263, *range(264, 267), 273, 277, 278, 279, 284, *range(288, 293), 301, 317, 318, 319, 320}
    | {*range(321, 326), 330, 332, 334, 336, 338, 339, 340, 341, 347, *range(512, 522), *range(529, 533), 37724}
)
CMYK = 5
_HEIC = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs")
_IPTC, _PHOTOSHOP = 33723, 34377


@dataclass(frozen=True)
class Entry:
    """One tag: its value as packed bytes, or the directory it points to."""

    tag: int
    type: int
    count: int
    value: bytes
    children: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Directory:
    """The first directory of a file, and the byte order of its values ("<" or ">")."""

    order: str
    entries: tuple[Entry, ...] = ()

    @classmethod
    def read(cls, stream: bytes) -> Directory:
        """The first directory of a TIFF file or an EXIF block; damaged entries are skipped, as in viewers."""
        stream = stream.removeprefix(b"Exif\0\0")
        order = ">" if stream[:2] == b"MM" else "<"
        try:
            (version,) = struct.unpack_from(order + "H", stream, 2)
            big = version == 43
            (start,) = struct.unpack_from(order + ("Q" if big else "I"), stream, 8 if big else 4)
        except struct.error:
            return cls(order)
        return cls(order, _read(stream, start, order, big, depth=0))

    def __contains__(self, tag: int) -> bool:
        return any(entry.tag == tag for entry in self.entries)

    def value(self, tag: int) -> bytes | None:
        """The packed value of a tag."""
        return next((entry.value for entry in self.entries if entry.tag == tag), None)

    def number(self, tag: int) -> int | None:
        """The value of a tag that holds one small number."""
        for entry in self.entries:
            if entry.tag == tag and entry.type in (_SHORT, _LONG):
                return _integer(entry.value[: _SIZES[entry.type]], self.order)
        return None

    def orientation(self) -> int:
        """The EXIF orientation, 1 to 8; 1 where none is given."""
        value = self.number(ORIENTATION) or 1
        return value if value <= 8 else 1

    def dpi(self) -> tuple[float, float] | None:
        """The resolution in dots per inch, where it is given."""
        per_inch = {2: 1.0, 3: 2.54}.get(self.number(RESOLUTION_UNIT) or 0)
        packed = [self.value(tag) or bytes(8) for tag in (X_RESOLUTION, Y_RESOLUTION)]
        if per_inch is None or any(len(value) != 8 for value in packed):
            return None
        (x, x_unit), (y, y_unit) = (struct.unpack(self.order + "2I", value) for value in packed)
        return (x / x_unit * per_inch, y / y_unit * per_inch) if x and x_unit and y and y_unit else None

    def with_values(self, icc: bytes | None, xmp: bytes | None, dpi: tuple[float, float] | None) -> Directory:
        """Add the metadata that a TIFF file stores in tags and other formats store elsewhere."""
        added = [Entry(XMP, _BYTE, len(xmp), xmp)] if xmp else []
        added += [Entry(ICC, _UNDEFINED, len(icc), icc)] if icc else []
        if dpi and X_RESOLUTION not in self:
            packed = [struct.pack(self.order + "2I", round(value * 1000), 1000) for value in dpi]
            added += [Entry(tag, _RATIONAL, 1, v) for tag, v in zip((X_RESOLUTION, Y_RESOLUTION), packed, strict=True)]
            added += [Entry(RESOLUTION_UNIT, _SHORT, 1, struct.pack(self.order + "H", 2))]
        return Directory(self.order, (*self.entries, *added))

    def without(self, tags: Iterable[int]) -> Directory:
        """All entries except those with these tags."""
        dropped = set(tags)
        return Directory(self.order, tuple(entry for entry in self.entries if entry.tag not in dropped))

    def pack(self, at: int) -> bytes:
        """The bytes of the directory at this offset of a file, followed by its values and subdirectories."""
        return _pack(self.entries, at, self.order)

    def exif(self) -> bytes:
        """The directory as an EXIF block."""
        magic = b"II*\0" if self.order == "<" else b"MM\0*"
        return magic + struct.pack(self.order + "I", 8) + self.pack(8)


def _read(stream: bytes, start: int, order: str, big: bool, depth: int) -> tuple[Entry, ...]:
    """The entries of the directory at `start`, up to where it is damaged."""
    head, row = ("Q", "HHQ8s") if big else ("H", "HHI4s")
    entries: dict[int, Entry] = {}
    step = struct.calcsize(order + row)
    left = len(stream)
    try:
        (rows,) = struct.unpack_from(order + head, stream, start)
        first = start + struct.calcsize(order + head)
        for number in range(rows):
            tag, type_, count, cell = struct.unpack_from(order + row, stream, first + number * step)
            size = _SIZES.get(type_, 0) * count
            if tag in entries or size > left:
                continue  # a repeated tag, or overlapping values: together larger than the file
            offset = _integer(cell, order)
            value = cell[:size] if size <= len(cell) else stream[offset : offset + size]
            children: tuple[Entry, ...] = ()
            # A directory is at most two levels below the first; anything deeper is a loop.
            if tag in _POINTERS and size <= len(cell) and depth < 2:
                children = _read(stream, _integer(value, order), order, big, depth + 1)
            if 0 < size == len(value) and (children or (tag not in _POINTERS and type_ <= _LAST_VALUE)):
                entries[tag] = Entry(tag, type_, count, value, children)
                left -= size
    except struct.error:
        pass  # the end of a truncated file: the entries before it are valid
    return tuple(entries.values())


def _integer(packed: bytes, order: str) -> int:
    return int.from_bytes(packed, "little" if order == "<" else "big")


def _pack(entries: Iterable[Entry], at: int, order: str) -> bytes:
    rows = sorted(entries, key=lambda entry: entry.tag)
    behind = at + 2 + 12 * len(rows) + 4
    table, rest = b"", b""
    for entry in rows:
        value, type_, count = entry.value, entry.type, entry.count
        packed = _pack(entry.children, behind + len(rest), order) if entry.children else value
        if entry.children or len(value) > 4:
            value = struct.pack(order + "I", behind + len(rest))
            rest += packed + b"\0" * (len(packed) % 2)
        if entry.children:
            type_, count = _LONG, 1
        table += struct.pack(order + "HHI", entry.tag, type_, count) + value.ljust(4, b"\0")
    return struct.pack(order + "H", len(rows)) + table + struct.pack(order + "I", 0) + rest


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

    def arguments(self) -> dict[str, Any]:
        """The metadata as arguments of Pillow's save."""
        fields = {"exif": self.exif, "xmp": self.xmp, "icc_profile": self.icc, "dpi": self.dpi}
        return {name: value for name, value in fields.items() if value}


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
