"""Pictures of what was recorded: upright, sRGB, without metadata; those used last stay in memory."""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from io import BytesIO

from PIL import Image

from homing._places import Place
from homing.errors import GoneError, PhotoError
from homing.evaluation.pictures import to_image
from homing.photo import Photo, read_file, size_of

MOST = 64_000_000  # bytes of pictures that stay in memory


class Pictures:
    """Pictures by what they show. Only the event loop touches them."""

    def __init__(self, most: int = MOST) -> None:
        self._most, self._bytes = most, 0
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    async def get(self, name: str, draw: Callable[[], Awaitable[bytes]]) -> bytes:
        """A picture, drawn if it is not there; it stays until those used later need the room."""
        data = self._kept.pop(name, None)
        if data is None:
            data = await draw()
            self._bytes += len(data) - len(self._kept.pop(name, b""))  # somebody else may have drawn it meanwhile
        self._kept[name] = data
        while self._bytes > self._most:
            self._bytes -= len(self._kept.popitem(last=False)[1])
        return data


@dataclass(frozen=True)
class Recorded:
    """The bytes of a file that are what was recorded, and how many pixels they hold."""

    name: str
    data: bytes
    pixels: int

    def photo(self) -> Photo:
        """The photo in it."""
        return Photo.decode(self.data, self.name)


def read_recorded(file: Place, sha256: str) -> Recorded:
    """What a file holds, if it is what was recorded: who shows another would lie. Else GoneError, without folders."""
    try:
        data = read_file(file)
        pixels = math.prod(size_of(data, file.name))
    except PhotoError as error:
        raise GoneError(str(error).replace(str(file), file.name)) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise GoneError(f"{file.name}: is another file by now than the one that was recorded")
    return Recorded(file.name, data, pixels)


def small_jpeg(file: Recorded, side: int) -> bytes:
    """A JPEG of at most so many pixels a side."""
    image = to_image(file.photo().view())
    image.thumbnail((side, side))
    return as_jpeg(image)


def as_jpeg(image: Image.Image) -> bytes:
    """The bytes of a picture with nothing in them but the picture."""
    written = BytesIO()
    image.save(written, format="JPEG", quality=90)
    return written.getvalue()


def as_png(image: Image.Image) -> bytes:
    """The same without loss."""
    written = BytesIO()
    image.save(written, format="PNG")
    return written.getvalue()
