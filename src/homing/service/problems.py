"""Whatever goes wrong, in one shape: application/problem+json, as in RFC 9457."""

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
# The first that fits: what is special stands before what is general.
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
    """A problem as RFC 9457 has it; `detail` is one line: what was expected, what came, what to do."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    instance: str = Field(description="The path of the request.")


class ProblemError(Exception):
    """A request that gets no answer but this."""

    def __init__(self, status: int, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = int(status), detail, dict(headers or {})


class TooBusyError(ProblemError):
    """More is asked for than is done at once; says when to come again."""

    def __init__(self, detail: str, *, seconds: int = 1) -> None:
        super().__init__(HTTPStatus.TOO_MANY_REQUESTS, detail, headers={"Retry-After": str(seconds)})


def to_problem(error: ProblemError | HomingError) -> ProblemError:
    """What an error of the library means to who asked; if it is the collection's, the log has its trace."""
    if isinstance(error, ProblemError):
        return error
    status = next(status for kind, status in _STATUS if isinstance(error, kind))
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        logging.getLogger("homing").error("%s", error, exc_info=error)
    return ProblemError(status, str(error))


def problem_details(request: Request, problem: ProblemError) -> ProblemDetails:
    """A problem as a document; what it says of files on this machine is left out."""
    return ProblemDetails(
        title=HTTPStatus(problem.status).phrase,
        status=problem.status,
        detail=request.app.state.service.upload_store.redact_paths(problem.detail),
        instance=request.url.path,
    )


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """These problems, and those that any route may have, for the description of a route."""
    schema = {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: schema}}
        for status in sorted({401, 403, 422, 429, 500, *statuses})
    }


def install_handlers(app: FastAPI) -> None:
    """Let every error of this app be answered in this shape."""

    async def on_known_error(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ProblemError | HomingError)
        return _problem_response(request, to_problem(error))

    async def on_http_exception(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        detail, headers = str(error.detail), dict(error.headers or {})
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED and (methods := _allowed_methods(app, request.url.path)):
            detail, headers["Allow"] = f"{request.method} is not answered here, {methods} is", methods
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
    """The answer to a mistake of ours; the log has its trace."""
    logging.getLogger("homing").error("%s %s broke", request.method, request.url.path, exc_info=error)
    line = "something went wrong inside the service; its log says what"
    return _problem_response(request, ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, line))


def _allowed_methods(app: FastAPI, path: str) -> str:
    """What may be asked of a path. Starlette knows one route of it, where several have the same."""
    described = app.openapi()["paths"].items()
    found = {way.upper() for template, ways in described if compile_path(template)[0].match(path) for way in ways}
    return ", ".join(sorted(found | ({"HEAD"} if "GET" in found else set())))


def _problem_response(request: Request, problem: ProblemError) -> JSONResponse:
    document = problem_details(request, problem).model_dump()
    return JSONResponse(document, problem.status, headers=problem.headers, media_type=MEDIA_TYPE)
