"""Servers that end under load, at random instants: nothing acknowledged is lost, all that was accepted is answered."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
from pathlib import Path

import httpx
import pytest
from tests.service.server_kills import ServedLife
from tests.service.serving import serve

from homing.collection import Collection


@pytest.fixture
def life(made: Path, tmp_path: Path) -> ServedLife:
    folder = tmp_path / "killed.homing"
    shutil.copytree(made, folder)
    return ServedLife(tmp_path / "photos", folder)


def test_nothing_acknowledged_is_lost_by_kills(life: ServedLife) -> None:
    for _ in range(3):
        life.end_once(signal.SIGKILL)
    assert any(each.released for each in life.acknowledged) and not all(each.released for each in life.acknowledged)
    with serve(life.collection) as served, httpx.Client(base_url=served.address, timeout=60) as client:
        for each in life.acknowledged[-20:]:
            files = {"photo": (each.photo.name, each.photo.read_bytes())}
            assert client.post("/v1/search?k=1", files=files).json()["matches"][0]["id"] == each.id
            if each.released:
                assert client.get(f"/v1/photos/{each.id}/released").status_code == 200


def test_all_that_was_accepted_is_answered_before_it_ends(life: ServedLife) -> None:
    for by in (signal.SIGTERM, signal.SIGINT):
        assert life.end_once(by) == []
    assert set(life.seen) <= {"200", "201", "ended", "leftovers"} and not life.seen["leftovers"]


def test_what_a_kill_left_of_uploads_is_found_when_it_is_old(life: ServedLife, photos: Path) -> None:
    uploads = life.collection / "uploads"
    rocket = hashlib.sha256((photos / "rocket.jpg").read_bytes()).hexdigest()  # which is a reference
    old = [uploads / ("a" * 64), uploads / "released" / ("b" * 64), uploads / rocket, uploads / "notes"]
    for folder in (*old, young := uploads / ("c" * 64)):
        folder.mkdir(parents=True)
        (folder / "photo.jpg").write_bytes(b"half a photo")
    for folder in old:
        os.utime(folder, (0, 0))
    with Collection.open(life.collection) as collection:
        found = collection.check()
        assert [each.part for each in found] == ["file", "file"] and all("no reference" in str(each) for each in found)
        assert all(each.mended for each in collection.check(repair=True)) and collection.check() == []
    assert not old[0].exists() and not old[1].exists()
    assert old[2].exists() and old[3].exists() and young.exists()
