"""File <-> Photo; nothing of the file is lost."""

from homing.photo._decode import size_of
from homing.photo._jpeg import Coding
from homing.photo.folders import Found, FoundAt, gather
from homing.photo.formats import QUICKER, SUFFIXES, format_name
from homing.photo.photo import Photo, moved_each, read_file
from homing.photo.square import Square, read_square

__all__ = [
    "QUICKER",
    "SUFFIXES",
    "Coding",
    "Found",
    "FoundAt",
    "Photo",
    "Square",
    "format_name",
    "gather",
    "moved_each",
    "read_file",
    "read_square",
    "size_of",
]
