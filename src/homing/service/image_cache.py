"""Thumbnails and pictures of recorded files: upright, sRGB, without metadata, in an LRU cache."""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from io import BytesIO

from PIL import Image

from homing._io.paths import Location
from homing.errors import NotFoundError, PhotoError
from homing.imaging import to_image
from homing.photo import Photo, image_size, read_file

MAX_BYTES = 64_000_000  # of cached pictures


class ImageCache:
    """An LRU cache of encoded pictures. Only the event loop uses it."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._images: OrderedDict[str, bytes] = OrderedDict()

    async def get(self, name: str, render: Callable[[], Awaitable[bytes]]) -> bytes:
        """The picture of this name, rendered if it is not cached."""
        data = self._images.pop(name, None)
        if data is None:
            data = await render()
            self._bytes += len(data) - len(
                self._images.pop(name, b"")
            )  # another request may have rendered it meanwhile
        self._images[name] = data
        while self._bytes > self._max_bytes:
            self._bytes -= len(self._images.popitem(last=False)[1])
        return data


@dataclass(frozen=True)
class RecordedFile:
    """A file whose bytes match the recorded hash, and its number of pixels."""

    name: str
    data: bytes
    pixels: int

    def photo(self) -> Photo:
        """Decode the photo."""
        return Photo.decode(self.data, self.name)


def read_recorded(file: Location, sha256: str) -> RecordedFile:
    """Read a file and compare it with its recorded hash; NotFoundError, which names no folder, if they differ."""
    try:
        data = read_file(file)
        pixels = math.prod(image_size(data, file.name))
    except PhotoError as error:
        raise NotFoundError(str(error).replace(str(file), file.name)) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise NotFoundError(f"{file.name}: the file has changed since it was recorded")
    return RecordedFile(file.name, data, pixels)


def thumbnail_jpeg(file: RecordedFile, side: int) -> bytes:
    """A JPEG of at most `side` pixels a side."""
    image = to_image(file.photo().pixels())
    image.thumbnail((side, side))
    return encode_jpeg(image)


def encode_jpeg(image: Image.Image) -> bytes:
    """Encode as JPEG, without metadata."""
    written = BytesIO()
    image.save(written, format="JPEG", quality=90)
    return written.getvalue()


def encode_png(image: Image.Image) -> bytes:
    """Encode as PNG, without metadata."""
    written = BytesIO()
    image.save(written, format="PNG")
    return written.getvalue()
