"""The server: uvicorn on one socket, until it is told to stop."""

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

_KEEP_ALIVE_SECONDS = 30  # seconds a connection may be kept open without a request
_SHUTDOWN_SECONDS = (
    60  # seconds that requests may take after a signal; what they gave to the writer is done in any case
)


class _HTTPProtocol(H11Protocol):
    """Ends where a request does not begin in time: who sends its head slowly, or none, would keep it for ever.

    Of a head that does not end it takes 64 kB, as h11 does.
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
            seconds = self.config.app.state.service.limits.seconds  # type: ignore[union-attr]
            self._header_timeout = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _cancel_header_timeout(self) -> None:
        if self._header_timeout is not None:
            self._header_timeout.cancel()
            self._header_timeout = None


class _Server(uvicorn.Server):
    """Tells when it listens, and its app when it is about to stop."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, on_listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._on_listening = app.state.service, on_listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_listening()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # From here on every answer closes its connection: one that came at this moment would be kept open.
        self._service.ready = False
        super().handle_exit(sig, frame)


def bind(host: str, port: int) -> socket.socket:
    """A socket that has its address, and does not listen yet; port 0 takes any that is free."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections have it from here. Without it the body of an answer waits 40 ms for its head to be acknowledged.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise _bind_error(host, port, error) from error
    return bound


def run(app: FastAPI, bound: socket.socket, on_listening: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT; then what was accepted is done. `on_listening` is called when it begins."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    config = uvicorn.Config(
        app,
        http=_HTTPProtocol,
        access_log=False,
        lifespan="off",  # which would log the trace of what cannot be started
        log_config=None,
        proxy_headers=False,  # who asks is who is connected, whatever they say
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        ws="none",
    )
    service = app.state.service
    service.start()
    # When it has stopped, uvicorn raises the signal again; here that was all it is for.
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
    except OSError as error:  # of two that were given the same address, who listens first has it
        host, port, *_ = bound.getsockname()
        raise _bind_error(host, port, error) from error


def _bind_error(host: str, port: int, error: OSError) -> HomingError:
    return HomingError(f"cannot listen at {host}, port {port}: {error.strerror or error}; choose another with --port")
