"""Pictures of what was recorded: upright, sRGB, without metadata; those used last stay in memory."""

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

MAX_BYTES = 64_000_000  # bytes of pictures that stay in memory


class ImageCache:
    """Pictures by what they show. Only the event loop touches them."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._images: OrderedDict[str, bytes] = OrderedDict()

    async def get(self, name: str, render: Callable[[], Awaitable[bytes]]) -> bytes:
        """A picture, drawn if it is not there; it stays until those used later need the room."""
        data = self._images.pop(name, None)
        if data is None:
            data = await render()
            self._bytes += len(data) - len(self._images.pop(name, b""))  # somebody else may have drawn it meanwhile
        self._images[name] = data
        while self._bytes > self._max_bytes:
            self._bytes -= len(self._images.popitem(last=False)[1])
        return data


@dataclass(frozen=True)
class RecordedFile:
    """The bytes of a file that are what was recorded, and how many pixels they hold."""

    name: str
    data: bytes
    pixels: int

    def photo(self) -> Photo:
        """The photo in it."""
        return Photo.decode(self.data, self.name)


def read_recorded(file: Location, sha256: str) -> RecordedFile:
    """What a file holds, if it is what was recorded: who shows another would lie. Else NotFoundError, without folders."""
    try:
        data = read_file(file)
        pixels = math.prod(image_size(data, file.name))
    except PhotoError as error:
        raise NotFoundError(str(error).replace(str(file), file.name)) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise NotFoundError(f"{file.name}: is another file by now than the one that was recorded")
    return RecordedFile(file.name, data, pixels)


def thumbnail_jpeg(file: RecordedFile, side: int) -> bytes:
    """A JPEG of at most so many pixels a side."""
    image = to_image(file.photo().pixels())
    image.thumbnail((side, side))
    return encode_jpeg(image)


def encode_jpeg(image: Image.Image) -> bytes:
    """The bytes of a picture with nothing in them but the picture."""
    written = BytesIO()
    image.save(written, format="JPEG", quality=90)
    return written.getvalue()


def encode_png(image: Image.Image) -> bytes:
    """The same without loss."""
    written = BytesIO()
    image.save(written, format="PNG")
    return written.getvalue()
