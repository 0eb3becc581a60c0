"""Servers that end under load, at random instants: nothing acknowledged is lost, all that was accepted is answered."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import httpx
import pytest
from tests.service.server_kills import ServedLife
from tests.service.serving import serve


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
    for _ in range(2):
        assert life.end_once(signal.SIGTERM) == []
    assert set(life.seen) <= {"200", "201", "ended"}
