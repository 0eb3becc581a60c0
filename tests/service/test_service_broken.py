"""What is wrong on the service's side: told as such, in a line, with the trace in the log alone."""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from tests.service.conftest import Server

from homing.collection import Collection
from homing.service import create_app
from homing.service.running import bind


def test_a_mistake_of_ours_is_told_without_its_trace(made: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Collection.open(made) as collection:
        app = create_app(collection)

        @app.get("/broken")
        async def broken() -> None:
            raise RuntimeError("a secret of the house")

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await client.get("/broken")

        with caplog.at_level(logging.ERROR, "homing"):
            answer = asyncio.run(ask())
        counted = app.state.service.metrics._registry.get_sample_value(
            "homing_requests_total", {"method": "GET", "route": "/broken", "status": "500"}
        )
    assert answer.status_code == 500 and answer.json()["status"] == 500
    assert "secret" not in answer.text and "Traceback" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff" and counted == 1
    assert "GET /broken broke" in caplog.text and "a secret of the house" in caplog.text


def test_a_damaged_collection_is_told_and_its_trace_logged(own_server: Server, photos: Path) -> None:
    with closing(sqlite3.connect(own_server.folder / "catalogue.sqlite", isolation_level=None)) as database:
        database.execute("DROP TABLE descriptors")
    answer = own_server.post("/v1/search", photos / "rocket.jpg")
    assert answer.status_code == 500 and "catalogue cannot be read" in answer.json()["detail"]
    assert answer.headers["x-content-type-options"] == "nosniff" and "Traceback" not in answer.text
    log = own_server.folder.with_suffix(".log").read_text()
    assert "Traceback" in log and "no such table: descriptors" in log


def test_what_cannot_be_started_is_told_in_a_line(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "c.homing"
    shutil.copytree(made, folder)
    command = [sys.executable, "-m", "homing", "serve", str(folder), "--port", "0"]
    with closing(sqlite3.connect(folder / "catalogue.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE photos SET code = x'00'")
    (folder / "index.faiss").unlink(missing_ok=True)
    threads = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)  # some were begun
    (folder / "uploads").rmdir()
    (folder / "uploads").touch()
    early = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    for done, word in ((threads, "--repair"), (early, "uploads cannot be kept")):
        assert done.returncode == 2 and word in done.stderr, done.stderr
        assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_who_asks_before_it_listens_is_refused_at_once() -> None:
    with bind("127.0.0.1", 0) as bound, pytest.raises(ConnectionRefusedError):
        socket.create_connection(bound.getsockname(), timeout=5)
