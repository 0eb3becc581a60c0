"""The app: routes, errors and headers around one collection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from homing import __version__
from homing.collection import Collection
from homing.service import problems
from homing.service.limits import Limits
from homing.service.problems import ProblemDetails
from homing.service.routes import health, page, photos, searching
from homing.service.state import Service

_POLICY = (
    "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def create_app(collection: Collection, *, limits: Limits | None = None) -> FastAPI:
    """An app that serves a collection. Who opened the collection closes it, after the app has stopped."""
    service = Service(collection, limits or Limits())

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(service.start)
        try:
            yield
        finally:
            await asyncio.to_thread(service.stop)

    app = FastAPI(
        title="homing",
        version=__version__,
        summary="Which references a photo is a copy of, and photos made easy to recognise again.",
        lifespan=living,
        docs_url=None,  # they load scripts from elsewhere, which the policy refuses
        redoc_url=None,
    )
    app.state.service = service
    problems.install(app)
    for room in (health, searching, photos, page):
        app.include_router(room.router)
    app.add_middleware(_Headers)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with the shape of problems, which no route names as its own answer."""
    if app.openapi_schema is None:
        described = FastAPI.openapi(app)
        schemas = described.setdefault("components", {}).setdefault("schemas", {})
        schemas["ProblemDetails"] = ProblemDetails.model_json_schema()
        for way in described["paths"].values():
            for route in way.values():
                invalid = route["responses"].get("422", {}).get("content", {})
                invalid.pop("application/json", None)  # FastAPI's own shape, which is not ours
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
    assert app.openapi_schema is not None
    return app.openapi_schema


class _Headers:
    """Puts the same headers on whatever is answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)
