"""Responses with pictures and files."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from urllib.parse import quote

from fastapi import Request, Response

from homing.collection.catalog import ReleaseRow
from homing.collection.uploads import display_name
from homing.errors import NotFoundError
from homing.service.image_cache import read_recorded
from homing.service.schemas import Quality, Release
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


def to_quality(psnr: float | None, ssim: float | None, linf: float | None) -> Quality:
    """Convert a quality; JSON has no infinity, so an infinite PSNR becomes null."""
    assert psnr is not None and ssim is not None and linf is not None
    return Quality(psnr=psnr if math.isfinite(psnr) else None, ssim=ssim, linf=linf)


def list_releases(service: Service, number: int) -> list[Release]:
    """Released files of a reference, latest first."""
    return [
        Release(
            photo=display_name(row.path),
            state=row.state,
            sha256=row.sha256,
            released=changed.replace(" ", "T") + "Z",
            quality=to_quality(row.psnr, row.ssim, row.linf),
            reason=row.reason,
        )
        for row, changed in service.listing.releases(number)
    ]


def latest_release(service: Service, number: int) -> ReleaseRow:
    """The latest release of a reference. Raises NotFoundError if there is none."""
    service.listing.one(number)
    releases = service.listing.releases(number)
    if not releases:
        raise NotFoundError(f"reference {number} has no released file; activate it first")
    return releases[0][0]


def released_response(service: Service, number: int) -> Response:
    """The latest released file of a reference."""
    row = latest_release(service, number)
    return file_response(
        read_recorded(service.upload_store.resolve_source(row.path), row.sha256).data, display_name(row.path)
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
