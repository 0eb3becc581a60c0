"""Responses with pictures and files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from urllib.parse import quote

from fastapi import Request, Response

from homing.collection import Reference, Release
from homing.collection.uploads import display_name
from homing.errors import NotFoundError
from homing.service.image_cache import read_recorded
from homing.service.state import Service

_TYPES = {".jpg": "jpeg", ".jpeg": "jpeg", ".jpe": "jpeg", ".jfif": "jpeg", ".tif": "tiff", ".hif": "heif"}
_OTHERS = ("png", "webp", "tiff", "avif", "heic", "heif", "bmp")


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


def latest_release(reference: Reference) -> Release:
    """The latest release of a reference. Raises NotFoundError if there is none."""
    if not reference.releases:
        raise NotFoundError(f"reference {reference.id} has no released file; activate it first")
    return reference.releases[0]


def released_response(service: Service, number: int) -> Response:
    """The latest released file of a reference."""
    latest = latest_release(service.listing.one(number))
    return file_response(
        read_recorded(service.upload_store.resolve_source(latest.path), latest.sha256).data, display_name(latest.path)
    )


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
