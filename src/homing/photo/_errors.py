"""Errors that decoding libraries raise for damaged files."""

from __future__ import annotations

import struct
import zlib

# Pillow, tifffile and imagecodecs document no error classes for damaged files; their parsers raise all of these.
# (tifffile.TiffFileError is a ValueError, the codec errors of imagecodecs are RuntimeErrors.)
DECODE_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    struct.error,
    zlib.error,
    LookupError,
    TypeError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
)


def reason(error: Exception) -> str:
    """An error's text on one line."""
    return " ".join(str(error).split()) or type(error).__name__
