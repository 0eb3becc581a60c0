"""The server: uvicorn on one socket, with graceful shutdown."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable
from types import FrameType

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from homing.errors import HomingError

_KEEP_ALIVE_SECONDS = 30  # seconds that an idle connection stays open
_SHUTDOWN_SECONDS = 60  # seconds for running requests after a signal; accepted writes always finish


class _HTTPProtocol(H11Protocol):
    """Closes connections whose request header does not arrive in time (slow-loris protection).

    The size of a header is limited to 64 kB by h11.
    """

    _header_timeout: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_header_timeout()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._start_header_timeout()
        else:
            self._cancel_header_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_header_timeout()
        super().connection_lost(exc)

    def _start_header_timeout(self) -> None:
        if self._header_timeout is None:
            app = self.config.app
            assert isinstance(app, FastAPI)
            seconds = app.state.service.limits.seconds
            self._header_timeout = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _cancel_header_timeout(self) -> None:
        if self._header_timeout is not None:
            self._header_timeout.cancel()
            self._header_timeout = None


class _Server(uvicorn.Server):
    """Reports when it listens, and tells the app when it is about to stop."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, on_listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._on_listening = app.state.service, on_listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_listening()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # From now on every response closes its connection; otherwise new connections would stay open.
        self._service.ready = False
        super().handle_exit(sig, frame)


def bind(host: str, port: int) -> socket.socket:
    """A bound socket that does not listen yet; port 0 chooses a free port."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Inherited by connections. Without it the body of a response waits 40 ms for its header to be acknowledged.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise _bind_error(host, port, error) from error
    return bound


def run(app: FastAPI, bound: socket.socket, on_listening: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, then finish accepted requests. `on_listening` is called once it listens."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    config = uvicorn.Config(
        app,
        http=_HTTPProtocol,
        access_log=False,
        lifespan="off",  # the service is started below, so that its errors are one line
        log_config=None,
        proxy_headers=False,  # the peer of the connection counts, not its headers
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        ws="none",
    )
    service = app.state.service
    service.start()
    # uvicorn raises the signal again after it has stopped; it has served its purpose by then.
    before = {each: signal.signal(each, lambda *_: None) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        _listen(bound)
        _Server(config, app, on_listening).run(sockets=[bound])
    finally:
        service.stop()
        for each, handler in before.items():
            signal.signal(each, handler)


def _listen(bound: socket.socket) -> None:
    try:
        bound.listen()
    except OSError as error:  # another process may have bound the same address
        host, port, *_ = bound.getsockname()
        raise _bind_error(host, port, error) from error


def _bind_error(host: str, port: int, error: OSError) -> HomingError:
    return HomingError(f"cannot listen at {host}, port {port}: {error.strerror or error}; choose another with --port")
