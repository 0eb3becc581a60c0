"""homing.Client and a server that is busy."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.service.conftest import Server

import homing
from homing.errors import HomingError
from homing.service.limits import Limits


@contextmanager
def busy(server: Server) -> Iterator[ExitStack]:
    """A server of which all places are taken, by requests whose photos have not come yet; closing it frees them."""
    where = urlsplit(server.address)
    headers = [f"Host: {where.netloc}", "Content-Type: multipart/form-data; boundary=x", "Content-Length: 9"]
    begin = "\r\n".join(["POST /v1/search HTTP/1.1", *headers, "", ""])
    with ExitStack() as connections:

        def take(places: int) -> None:
            for _ in range(places):
                each = connections.enter_context(socket.create_connection((where.hostname, where.port)))
                each.sendall(begin.encode())

        take(Limits().requests)
        started = time.monotonic()
        while server.post("/v1/search", ("x.png", b"")).status_code != 429:
            assert time.monotonic() - started < 20
            time.sleep(0.02)
            take(1)  # one that asks whether all are taken may have been in the way of another
        yield connections


def test_a_busy_service_is_waited_for(server: Server, copy: Path) -> None:
    with busy(server) as connections, homing.Client(server.address) as client:
        started = time.monotonic()
        threading.Timer(0.5, connections.close).start()
        assert client.search(copy, k=1)[0].photo == "rocket.jpg"
        assert time.monotonic() - started >= 1  # as long as it said


def test_it_is_not_waited_for_without_end(server: Server, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homing.service.asking._TIMES", 1)
    with busy(server), homing.Client(server.address) as client:
        started = time.monotonic()
        with pytest.raises(HomingError, match=r"^64 requests are being worked on[^\n]+$"):
            client.search(copy)
        assert 1 <= time.monotonic() - started < 10
