"""Errors of the service itself: one line in the response, the traceback in the log only."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import resource
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from PIL import Image
from tests.collection.tiny import tiny_photos
from tests.service.conftest import Process, Server
from tests.service.server_process import START_TIMEOUT

from homing.collection import Collection
from homing.service import create_app
from homing.service.server import bind


@pytest.mark.slow
def test_an_internal_error_is_reported_without_its_traceback(template: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Collection.open(template) as collection:
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
    assert "GET /broken failed" in caplog.text and "a secret of the house" in caplog.text


@pytest.mark.slow
def test_a_damaged_collection_is_reported_and_its_traceback_logged(own_process: Process, photos: Path) -> None:
    with closing(sqlite3.connect(own_process.folder / "catalog.sqlite", isolation_level=None)) as database:
        database.execute("DROP TABLE descriptors")
    answer = own_process.post("/v1/search", photos / "rocket.jpg")
    assert answer.status_code == 500 and "catalog cannot be read" in answer.json()["detail"]
    assert answer.headers["x-content-type-options"] == "nosniff" and "Traceback" not in answer.text
    log = own_process.folder.with_suffix(".log").read_text()
    assert "Traceback" in log and "no such table: descriptors" in log


@pytest.mark.slow
def test_a_failed_start_is_one_line(template: Path, tmp_path: Path) -> None:
    folder = tmp_path / "c.homing"
    shutil.copytree(template, folder)
    command = [sys.executable, "-m", "homing", "serve", str(folder), "--port", "0"]
    with closing(sqlite3.connect(folder / "catalog.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE photos SET code = x'00'")
    (folder / "index.faiss").unlink(missing_ok=True)
    threads = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=START_TIMEOUT
    )  # some threads were started
    (folder / "uploads").rmdir()
    (folder / "uploads").touch()
    early = subprocess.run(command, capture_output=True, text=True, check=False, timeout=START_TIMEOUT)
    for done, word in ((threads, "--repair"), (early, "uploads cannot be saved")):
        assert done.returncode == 2 and word in done.stderr, done.stderr
        assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_connections_before_listening_are_refused() -> None:
    with bind("127.0.0.1", 0) as bound, pytest.raises(ConnectionRefusedError):
        socket.create_connection(bound.getsockname(), timeout=5)


def log_of(server: Server) -> list[str]:
    """The actions in the audit log."""
    return [json.loads(line)["action"] for line in (server.folder / "audit.jsonl").read_text().splitlines()]


def uploads(server: Server, photo: Path) -> Path:
    """The folder that stores an upload."""
    return server.folder / "uploads" / hashlib.sha256(photo.read_bytes()).hexdigest()


def test_disk_errors_are_not_blamed_on_the_photo(own_server: Server, tmp_path: Path) -> None:
    first, second, third = tiny_photos(tmp_path / "new", 3)
    (own_server.folder / "audit.jsonl").mkdir()
    answer = own_server.post("/v1/photos", first)
    assert answer.status_code == 500 and "audit log" in answer.json()["detail"]
    assert str(own_server.folder) not in answer.text
    (own_server.folder / "audit.jsonl").rmdir()
    uploads(own_server, third).touch()
    for path in ("/v1/photos", "/v1/activate"):
        answer = own_server.post(path, third)
        assert answer.status_code == 500 and "cannot be saved" in answer.json()["detail"]
    assert own_server.post("/v1/photos", second, third).status_code == 500
    assert not uploads(own_server, second).exists()


@pytest.mark.slow
def test_a_reference_without_its_released_file_is_in_the_audit_log(own_process: Process, tmp_path: Path) -> None:
    Image.effect_noise((1100, 1000), 50).convert("RGB").save(tmp_path / "noise.jpg", quality=50)
    resource.prlimit(own_process.process.pid, resource.RLIMIT_FSIZE, (3_000_000, -1))  # a BMP of it is larger
    answer = own_process.post("/v1/activate", tmp_path / "noise.jpg", data={"recipe": "homing-fast", "format": "bmp"})
    assert answer.status_code == 500 and "cannot write" in answer.json()["detail"]
    assert str(own_process.folder) not in answer.text
    assert log_of(own_process) == ["added"]
    (noise,) = own_process.client.get("/v1/photos?name=noise").json()["photos"]
    assert noise["state"] == "passive"


def test_a_removed_reference_with_an_undeletable_file_is_in_the_audit_log(own_server: Server, tmp_path: Path) -> None:
    (photo,) = tiny_photos(tmp_path / "new", 1)
    (outcome,) = own_server.post("/v1/photos", photo).json()["outcomes"]
    stored = uploads(own_server, photo) / photo.name
    stored.unlink()
    stored.mkdir()
    answer = own_server.client.delete(f"/v1/photos/{outcome['id']}")
    assert answer.status_code == 500 and "cannot be removed" in answer.json()["detail"]
    assert own_server.client.get(f"/v1/photos/{outcome['id']}").status_code == 404
    assert log_of(own_server) == ["added", "removed"]
