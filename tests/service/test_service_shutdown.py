"""Shutdown of a service, and a failed start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.collection.tiny import tiny_photos
from tests.service.conftest import Process, Server

from homing.collection import Collection


@pytest.mark.slow
def test_an_accepted_job_is_finished_before_shutdown(own_process: Process, tmp_path: Path) -> None:
    answer = own_process.post("/v1/photos?job=true", *tiny_photos(tmp_path / "many", 64))
    assert answer.status_code == 202
    assert own_process.stop() == 0
    with Collection.open(own_process.folder) as collection:
        assert collection.info().photos == 3 + 64


@pytest.mark.slow
def test_an_index_snapshot_is_written_at_shutdown(own_process: Process, tmp_path: Path) -> None:
    own_process.post("/v1/photos", *tiny_photos(tmp_path / "few", 4))
    own_process.post("/v1/search", *tiny_photos(tmp_path / "few", 1))
    own_process.stop()
    with Collection.open(own_process.folder) as collection:
        assert collection.search_settings().references == collection.info().photos + collection.info().distractors
        assert collection.storage.synced_index.saved


def test_a_taken_port_is_a_one_line_error(server: Server, template: Path) -> None:
    port = server.address.rpartition(":")[2]
    command = [sys.executable, "-m", "homing", "serve", str(template), "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and port in done.stderr and "Traceback" not in done.stderr
