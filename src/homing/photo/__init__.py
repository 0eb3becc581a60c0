"""Read photos from files and write them back, with their metadata."""

from homing.photo._decode import image_size
from homing.photo._jpeg import JpegTables
from homing.photo.differences import differences
from homing.photo.files import QUICK_FORMATS, SUFFIXES, FoundPhoto, LocalPhoto, find_photos, format_name
from homing.photo.graphics import graphic_kind
from homing.photo.inputs import MemoryPhoto, PhotoLike, PhotosLike, Square, as_photo, as_photos, read_square
from homing.photo.photo import Photo, PhotoFile, apply_changes, read_file

__all__ = [
    "QUICK_FORMATS",
    "SUFFIXES",
    "FoundPhoto",
    "JpegTables",
    "LocalPhoto",
    "MemoryPhoto",
    "Photo",
    "PhotoFile",
    "PhotoLike",
    "PhotosLike",
    "Square",
    "apply_changes",
    "as_photo",
    "as_photos",
    "differences",
    "find_photos",
    "format_name",
    "graphic_kind",
    "image_size",
    "read_file",
    "read_square",
]


def __dir__() -> list[str]:
    return sorted(__all__)
