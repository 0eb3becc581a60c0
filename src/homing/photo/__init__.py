"""Read photos from files and write them back, with their metadata."""

from homing.photo._decode import image_size
from homing.photo._jpeg import JpegTables
from homing.photo.differences import differences
from homing.photo.folders import FoundPhoto, LocalPhoto, find_photos
from homing.photo.formats import QUICK_FORMATS, SUFFIXES, format_name
from homing.photo.graphics import graphic_kind
from homing.photo.inputs import MemoryPhoto, PhotoLike, PhotosLike, as_photo, as_photos
from homing.photo.photo import Photo, apply_changes, read_file
from homing.photo.square import Square, read_square

__all__ = [
    "QUICK_FORMATS",
    "SUFFIXES",
    "FoundPhoto",
    "JpegTables",
    "LocalPhoto",
    "MemoryPhoto",
    "Photo",
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
