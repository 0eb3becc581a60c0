"""Responses: errors as application/problem+json (RFC 9457), pictures with ETags from an LRU cache, attachments."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from homing.collection import Reference, Release
from homing.errors import CollectionError, HomingError, NotFoundError
from homing.service.schemas import STATUS_OF, ProblemDetails

PROBLEM_TYPE = "application/problem+json"
MAX_BYTES = 64_000_000  # of cached pictures
_TYPES = {".jpg": "jpeg", ".jpeg": "jpeg", ".jpe": "jpeg", ".jfif": "jpeg", ".tif": "tiff", ".hif": "heif"}
_OTHERS = ("png", "webp", "tiff", "avif", "heic", "heif", "bmp")
_log = logging.getLogger("homing")


class TooBusyError(HTTPException):
    """A limit is reached (status 429); Retry-After says when to try again."""

    def __init__(self, detail: str, *, seconds: int = 1) -> None:
        super().__init__(HTTPStatus.TOO_MANY_REQUESTS, detail, {"Retry-After": str(seconds)})


HANDLED = (HomingError, HTTPException, RequestValidationError)


def to_problem(error: Exception) -> HTTPException:
    """Convert an error; those of the collection, and unexpected ones, are logged with their traceback."""
    if isinstance(error, HTTPException):
        return error
    if isinstance(error, RequestValidationError):
        lines = [f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in error.errors()]
        return HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, "; ".join(lines))
    if not isinstance(error, HomingError):
        return HTTPException(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; see the log of the service")
    status = next((status for kind, status in STATUS_OF.items() if isinstance(error, kind)), None)
    if status is None and isinstance(error, CollectionError):
        _log.error("%s", error, exc_info=error)
        status = HTTPStatus.INTERNAL_SERVER_ERROR
    return HTTPException(status or HTTPStatus.UNPROCESSABLE_ENTITY, str(error))


def problem_details(request: Request, problem: HTTPException) -> ProblemDetails:
    """The document of a problem, without paths of this machine."""
    return ProblemDetails(
        title=HTTPStatus(problem.status_code).phrase,
        status=int(problem.status_code),
        detail=request.app.state.service.upload_store.redact_paths(problem.detail),
        instance=request.url.path,
    )


async def problem_response(request: Request, error: Exception) -> JSONResponse:
    """The response to any error; unexpected ones are logged with their traceback."""
    if not isinstance(error, HANDLED):
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    problem = to_problem(error)
    if problem.status_code == HTTPStatus.METHOD_NOT_ALLOWED and (methods := _allowed_methods(request)):
        line = f"{request.method} is not allowed here; allowed: {methods}"
        problem = HTTPException(problem.status_code, line, {"Allow": methods})
    document = asdict(problem_details(request, problem))
    return JSONResponse(document, problem.status_code, headers=problem.headers, media_type=PROBLEM_TYPE)


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI responses: these problems, and those of every route."""
    schema = {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {PROBLEM_TYPE: schema}}
        for status in sorted({401, 403, 422, 429, 500, *statuses})
    }


def _allowed_methods(request: Request) -> str:
    """The methods of a path. Starlette itself reports only those of the first matching route."""
    described = request.app.openapi()["paths"].items()
    path = request.url.path
    found = {
        method.upper() for template, methods in described if compile_path(template)[0].match(path) for method in methods
    }
    return ", ".join(sorted(found | ({"HEAD"} if "GET" in found else set())))


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
