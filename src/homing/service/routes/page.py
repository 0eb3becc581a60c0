"""GET /: the page, from files of the package."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from importlib.resources import files

from fastapi import APIRouter, HTTPException, Request, Response

from homing.service.responses import etag_response

router = APIRouter()
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True)
class _PageFile:
    data: bytes
    media_type: str
    tag: str


@cache
def _page_files() -> dict[str, _PageFile]:
    """Files of the page by name, read once; only known types are served."""
    found = {}
    for file in files("homing.service").joinpath("page").iterdir():
        kind = file.name.rpartition(".")[2]
        if file.is_file() and kind in _TYPES:
            data = file.read_bytes()
            found[file.name] = _PageFile(data, _TYPES[kind], hashlib.sha256(data).hexdigest()[:32])
    return found


@router.get("/", include_in_schema=False)
@router.get("/page/{name}", include_in_schema=False)
async def page(request: Request, name: str = "index.html") -> Response:
    """A file of the page; browsers revalidate it with its ETag."""
    file = _page_files().get(name)
    if file is None:
        raise HTTPException(HTTPStatus.NOT_FOUND, f"the page has no file {name!r}")

    async def data() -> bytes:
        return file.data

    return await etag_response(request, file.tag, file.media_type, data, cache_control="no-cache")
