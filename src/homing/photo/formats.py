"""The file formats homing reads and writes, and the suffix each is written with."""

from __future__ import annotations

from pathlib import Path

from homing.errors import UnknownNameError

SUFFIXES = {
    "JPEG": ".jpg",
    "PNG": ".png",
    "WEBP": ".webp",
    "TIFF": ".tif",
    "AVIF": ".avif",
    "HEIC": ".heic",
    "BMP": ".bmp",
}

_OTHER_SUFFIXES = {
    ".jpeg": "JPEG",
    ".jpe": "JPEG",
    ".jfif": "JPEG",
    ".tiff": "TIFF",
    ".heif": "HEIC",
    ".hif": "HEIC",
}
_MAX_NAME_BYTES = 200  # file systems accept 255, and temporary names are longer
_SHORT = {"JPG": "JPEG", "TIF": "TIFF", "HEIF": "HEIC", "HIF": "HEIC"}

QUICK_FORMATS = ("PNG",)
"""The formats that can be written faster, as a larger file with the same pixels."""


def format_name(name: str) -> str:
    """The format called `name` in any case; "jpg", "tif", "heif" and "hif" are accepted too."""
    upper = name.upper()
    format = _SHORT.get(upper, upper)
    if format not in SUFFIXES:
        raise UnknownNameError("format", name.lower(), map(str.lower, SUFFIXES))
    return format


def has_suffix_of(name: Path, format: str) -> bool:
    """Whether a file name ends as files of this format do."""
    suffix = name.suffix.lower()
    return SUFFIXES[format] == suffix or _OTHER_SUFFIXES.get(suffix) == format


def is_file_name(name: str) -> bool:
    """Whether a text is the plain name of a file: short, printable, without folders, not hidden."""
    try:
        plain = 0 < len(name.encode()) <= _MAX_NAME_BYTES
    except UnicodeEncodeError:
        return False
    return plain and not name.startswith(".") and name.isprintable() and not set(name) & set("/\\")
