"""What was acknowledged is there, however the service ends."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from tests.collection.tiny import tiny_photos
from tests.service.conftest import Server

from homing.collection import Collection


def post_all(server: Server, photos: list[Path]) -> list[tuple[str, int]]:
    """Post photos from several clients until the server is gone; the names and ids that were acknowledged."""

    def post(path: Path) -> tuple[str, int] | None:
        try:
            answer = server.post("/v1/photos", path)
        except httpx.TransportError:
            return None
        if answer.status_code != 201:
            return None
        (outcome,) = answer.json()["outcomes"]
        return path.name, outcome["id"]

    with ThreadPoolExecutor(8) as pool:
        return [each for each in pool.map(post, photos) if each is not None]


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_acknowledged_photo_is_lost(own_server: Server, tmp_path: Path, by: signal.Signals) -> None:
    photos = tiny_photos(tmp_path / "many", 300)
    with ThreadPoolExecutor(1) as pool:
        posting = pool.submit(post_all, own_server, photos)
        time.sleep(1.5)
        code = own_server.stop(by)
        acknowledged = posting.result()
    assert code == (-signal.SIGKILL if by == signal.SIGKILL else 0)
    assert 0 < len(acknowledged) < len(photos), "it was stopped in the midst of it"
    by_name = {path.name: path for path in photos}
    with Collection.open(own_server.folder) as collection:
        catalogue = collection.folder.catalogue
        for name, number in acknowledged:
            source = Path(catalogue.describe(number)[0])
            assert source.name == name and source.read_bytes() == by_name[name].read_bytes()
            assert collection.search(by_name[name], k=1)[0].id == number
        assert collection.check() == []


def test_a_job_that_was_accepted_is_done_before_the_service_ends(own_server: Server, tmp_path: Path) -> None:
    answer = own_server.post("/v1/photos?job=true", *tiny_photos(tmp_path / "many", 64))
    assert answer.status_code == 202
    assert own_server.stop() == 0
    with Collection.open(own_server.folder) as collection:
        assert collection.info().photos == 3 + 64


def test_a_snapshot_of_the_index_is_kept(own_server: Server, tmp_path: Path) -> None:
    own_server.post("/v1/photos", *tiny_photos(tmp_path / "few", 4))
    own_server.post("/v1/search", *tiny_photos(tmp_path / "few", 1))
    own_server.stop()
    with Collection.open(own_server.folder) as collection:
        assert collection.plan().references == collection.info().photos + collection.info().background
        assert collection._live.kept


def test_a_taken_port_is_told_in_a_line(server: Server, made: Path) -> None:
    import subprocess
    import sys

    port = server.address.rpartition(":")[2]
    command = [sys.executable, "-m", "homing", "serve", str(made), "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and port in done.stderr and "Traceback" not in done.stderr
