"""File <-> Photo; nothing of the file is lost."""

from homing.photo.folders import Found, gather
from homing.photo.formats import SUFFIXES, format_name
from homing.photo.photo import Photo, read_file

__all__ = ["SUFFIXES", "Found", "Photo", "format_name", "gather", "read_file"]
