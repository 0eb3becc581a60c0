"""The FastAPI app: routes, error handlers and response headers for one collection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import perf_counter

from fastapi import FastAPI, Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from homing import __version__
from homing.collection import Collection
from homing.service.auth import Keys
from homing.service.limits import Limits
from homing.service.responses import HANDLED, problem_response
from homing.service.routes import activate, photos, search, status
from homing.service.state import Service

_CONTENT_SECURITY_POLICY = (
    "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def create_app(collection: Collection, *, keys: Keys | None = None, limits: Limits | None = None) -> FastAPI:
    """Create an app that serves a collection. Without `keys`, only requests from this machine are answered.

    The caller closes the collection after the app has stopped.
    """
    service = Service(collection, keys, limits or Limits())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(service.start)
        try:
            yield
        finally:
            await asyncio.to_thread(service.stop)

    app = FastAPI(
        title="homing",
        version=__version__,
        summary="Find the references that a photo is a copy of, and activate photos before release.",
        lifespan=lifespan,
        exception_handlers=dict.fromkeys(HANDLED, problem_response),  # the middleware answers all others
        docs_url=None,  # these pages load scripts from other hosts, which the policy forbids
        redoc_url=None,
    )
    app.state.service = service
    for route in (status, search, photos, activate):
        app.include_router(route.router)
    app.add_middleware(_HeadersMiddleware, service=service)
    return app


class _HeadersMiddleware:
    """Sets security headers on every response, and records metrics."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # uvicorn omits the body
            scope = {**scope, "method": "GET"}
        started, response_started = perf_counter(), False

        async def with_headers(message: Message) -> None:
            nonlocal response_started
            if message["type"] == "http.response.start":
                response_started = True
                self._service.metrics.observe_request(scope, int(message["status"]), perf_counter() - started)
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
                if not self._service.ready:
                    headers["Connection"] = "close"
            await send(message)

        try:
            await self._app(scope, receive, with_headers)
        except Exception as error:
            # Handled here because Starlette's own handler runs outside of the middleware.
            if response_started:
                raise  # uvicorn logs it and closes the connection
            response = await problem_response(Request(scope), error)
            await response(scope, receive, with_headers)
