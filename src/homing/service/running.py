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

_IDLE = 30  # seconds a connection may be kept open without a request
_LAST = 60  # seconds that requests may take after a signal; what they gave to the writer is done in any case


class _Connection(H11Protocol):
    """Ends where a request does not begin in time: who sends its head slowly, or none, would keep it for ever.

    Of a head that does not end it takes 64 kB, as h11 does.
    """

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait_for_head()
        else:
            self._wait_no_more()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        if self._late is None:
            seconds = self.config.app.state.service.limits.seconds  # type: ignore[union-attr]
            self._late = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _wait_no_more(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class _Server(uvicorn.Server):
    """Tells when it listens, and its app when it is about to stop."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, listens: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._listens = app.state.service, listens

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._listens()

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
        raise _no_listening(host, port, error) from error
    return bound


def run(app: FastAPI, bound: socket.socket, listens: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT; then what was accepted is done. `listens` is called when it begins."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    config = uvicorn.Config(
        app,
        http=_Connection,
        access_log=False,
        lifespan="off",  # which would log the trace of what cannot be started
        log_config=None,
        proxy_headers=False,  # who asks is who is connected, whatever they say
        server_header=False,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=_LAST,
        ws="none",
    )
    service = app.state.service
    service.start()
    # When it has stopped, uvicorn raises the signal again; here that was all it is for.
    before = {each: signal.signal(each, lambda *_: None) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        _listen(bound)
        _Server(config, app, listens).run(sockets=[bound])
    finally:
        service.stop()
        for each, handler in before.items():
            signal.signal(each, handler)


def _listen(bound: socket.socket) -> None:
    try:
        bound.listen()
    except OSError as error:  # of two that were given the same address, who listens first has it
        host, port, *_ = bound.getsockname()
        raise _no_listening(host, port, error) from error


def _no_listening(host: str, port: int, error: OSError) -> HomingError:
    return HomingError(f"cannot listen at {host}, port {port}: {error.strerror or error}; choose another with --port")
