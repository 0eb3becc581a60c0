"""Errors as application/problem+json (RFC 9457)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from homing.errors import (
    BusyError,
    CollectionError,
    HomingError,
    NotFoundError,
    PhotoError,
    TooLargeError,
    UnsupportedError,
)

MEDIA_TYPE = "application/problem+json"
# The first that matches: subclasses come before their base classes.
_STATUS: list[tuple[type[HomingError], HTTPStatus]] = [
    (UnsupportedError, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    (TooLargeError, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (PhotoError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (BusyError, HTTPStatus.CONFLICT),
    (NotFoundError, HTTPStatus.NOT_FOUND),
    (CollectionError, HTTPStatus.INTERNAL_SERVER_ERROR),
    (HomingError, HTTPStatus.UNPROCESSABLE_ENTITY),
]


class ProblemDetails(BaseModel):
    """A problem as in RFC 9457; `detail` is one line: what was expected, what was received, what to do."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    instance: str = Field(description="The path of the request.")


class ProblemError(Exception):
    """An error response with an HTTP status."""

    def __init__(self, status: int, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = int(status), detail, dict(headers or {})


class TooBusyError(ProblemError):
    """A limit is reached (status 429); Retry-After says when to try again."""

    def __init__(self, detail: str, *, seconds: int = 1) -> None:
        super().__init__(HTTPStatus.TOO_MANY_REQUESTS, detail, headers={"Retry-After": str(seconds)})


def to_problem(error: ProblemError | HomingError) -> ProblemError:
    """Convert an error of the library; errors of the collection are logged with their traceback."""
    if isinstance(error, ProblemError):
        return error
    status = next(status for kind, status in _STATUS if isinstance(error, kind))
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        logging.getLogger("homing").error("%s", error, exc_info=error)
    return ProblemError(status, str(error))


def problem_details(request: Request, problem: ProblemError) -> ProblemDetails:
    """The document of a problem, without paths of this machine."""
    return ProblemDetails(
        title=HTTPStatus(problem.status).phrase,
        status=problem.status,
        detail=request.app.state.service.upload_store.redact_paths(problem.detail),
        instance=request.url.path,
    )


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI responses: these problems, and those of every route."""
    schema = {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: schema}}
        for status in sorted({401, 403, 422, 429, 500, *statuses})
    }


def install_handlers(app: FastAPI) -> None:
    """Install the exception handlers of an app."""

    async def on_known_error(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ProblemError | HomingError)
        return _problem_response(request, to_problem(error))

    async def on_http_exception(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        detail, headers = str(error.detail), dict(error.headers or {})
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED and (methods := _allowed_methods(app, request.url.path)):
            detail, headers["Allow"] = f"{request.method} is not allowed here; allowed: {methods}", methods
        return _problem_response(request, ProblemError(error.status_code, detail, headers=headers))

    async def on_validation_error(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        lines = [f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in error.errors()]
        return _problem_response(request, ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "; ".join(lines)))

    app.add_exception_handler(ProblemError, on_known_error)
    app.add_exception_handler(HomingError, on_known_error)
    app.add_exception_handler(HTTPException, on_http_exception)
    app.add_exception_handler(RequestValidationError, on_validation_error)


def internal_error_response(request: Request, error: Exception) -> JSONResponse:
    """The response to an unexpected error, which is logged with its traceback."""
    logging.getLogger("homing").error("%s %s failed", request.method, request.url.path, exc_info=error)
    line = "internal error; see the log of the service"
    return _problem_response(request, ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, line))


def _allowed_methods(app: FastAPI, path: str) -> str:
    """The methods of a path. Starlette itself reports only those of the first matching route."""
    described = app.openapi()["paths"].items()
    found = {
        method.upper() for template, methods in described if compile_path(template)[0].match(path) for method in methods
    }
    return ", ".join(sorted(found | ({"HEAD"} if "GET" in found else set())))


def _problem_response(request: Request, problem: ProblemError) -> JSONResponse:
    document = problem_details(request, problem).model_dump()
    return JSONResponse(document, problem.status, headers=problem.headers, media_type=MEDIA_TYPE)
