"""Responses with pictures and files: recorded files, pictures of them in an LRU cache, ETags, attachments."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from urllib.parse import quote

from fastapi import Request, Response

from homing._io.paths import Location
from homing.collection import Reference, Release
from homing.errors import NotFoundError, PhotoError
from homing.photo import read_file
from homing.service.uploads import PhotoFile

MAX_BYTES = 64_000_000  # of cached pictures
_TYPES = {".jpg": "jpeg", ".jpeg": "jpeg", ".jpe": "jpeg", ".jfif": "jpeg", ".tif": "tiff", ".hif": "heif"}
_OTHERS = ("png", "webp", "tiff", "avif", "heic", "heif", "bmp")


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
            replaced = self._images.pop(name, b"")  # another request may have rendered it meanwhile
            self._bytes += len(data) - len(replaced)
        self._images[name] = data
        while self._bytes > self._max_bytes:
            self._bytes -= len(self._images.popitem(last=False)[1])
        return data


def read_recorded(path: Location, sha256: str) -> PhotoFile:
    """Read a file and compare it with its recorded hash; NotFoundError, which names no folder, if they differ."""
    try:
        file = PhotoFile(path.name, read_file(path))
        _ = file.size  # of a photo
    except PhotoError as error:
        raise NotFoundError(str(error).replace(str(path), path.name)) from error
    if file.sha256 != sha256:
        raise NotFoundError(f"{file.name}: the file has changed since it was recorded")
    return file


def latest_release(reference: Reference) -> Release:
    """The latest release of a reference. Raises NotFoundError if there is none."""
    if not reference.releases:
        raise NotFoundError(f"reference {reference.id} has no released file; activate it first")
    return reference.releases[0]


async def etag_response(
    request: Request,
    tag: str,
    media_type: str,
    data: Callable[[], Awaitable[bytes]],
    *,
    cache_control: str = "private, no-cache",
) -> Response:
    """A response with an ETag, which browsers revalidate by default.

    If the browser has the current version, the data is neither computed nor sent.
    """
    headers = {"ETag": f'"{tag}"', "Cache-Control": cache_control}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(await data(), media_type=media_type, headers=headers)


def file_response(data: bytes, name: str) -> Response:
    """A file as an attachment with its name."""
    suffix = "." + name.rpartition(".")[2].lower()
    kind = _TYPES.get(suffix, suffix[1:])
    plain = "".join(each if each.isascii() and each.isprintable() and each not in '"\\' else "_" for each in name)
    return Response(
        data,
        media_type=f"image/{kind}" if kind in ("jpeg", *_OTHERS) else "application/octet-stream",
        headers={
            "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}",
            "Cache-Control": "private, no-store",
        },
    )
