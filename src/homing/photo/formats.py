"""The file formats homing reads and writes, and the suffix each is written with."""

from __future__ import annotations

from homing.errors import UnknownNameError

SUFFIXES = {
    **{"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp", "TIFF": ".tif", "AVIF": ".avif"},
    **{"HEIC": ".heic", "BMP": ".bmp"},
}

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
