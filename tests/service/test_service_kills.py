"""Servers killed or stopped under load: acknowledged photos are kept, accepted requests are answered."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
from pathlib import Path

import httpx
import pytest
from tests.service.server_kills import CrashTest
from tests.service.server_process import serve

from homing.collection import Collection

pytestmark = pytest.mark.slow


@pytest.fixture
def crash_test(template: Path, tmp_path: Path) -> CrashTest:
    folder = tmp_path / "killed.homing"
    shutil.copytree(template, folder)
    return CrashTest(tmp_path / "photos", folder)


def test_nothing_acknowledged_is_lost_by_kills(crash_test: CrashTest) -> None:
    for _ in range(3):
        crash_test.run_and_signal(signal.SIGKILL)
    assert any(each.released for each in crash_test.acknowledged) and not all(
        each.released for each in crash_test.acknowledged
    )
    with serve(crash_test.collection) as served, httpx.Client(base_url=served.address, timeout=60) as client:
        for each in crash_test.acknowledged[-20:]:
            files = {"photo": (each.photo.name, each.photo.read_bytes())}
            assert client.post("/v1/search?k=1", files=files).json()["matches"][0]["id"] == each.id
            if each.released:
                assert client.get(f"/v1/photos/{each.id}/released").status_code == 200


def test_accepted_requests_are_answered_before_shutdown(crash_test: CrashTest) -> None:
    for by in (signal.SIGTERM, signal.SIGINT):
        assert crash_test.run_and_signal(by) == []
    assert set(crash_test.seen) <= {"200", "201", "ended", "leftovers"} and not crash_test.seen["leftovers"]


def test_old_leftover_uploads_are_found_after_a_kill(crash_test: CrashTest, photos: Path) -> None:
    uploads = crash_test.collection / "uploads"
    rocket = hashlib.sha256((photos / "rocket.jpg").read_bytes()).hexdigest()  # a reference
    old = [uploads / ("a" * 64), uploads / "released" / ("b" * 64), uploads / rocket, uploads / "notes"]
    for folder in (*old, young := uploads / ("c" * 64)):
        folder.mkdir(parents=True)
        (folder / "photo.jpg").write_bytes(b"half a photo")
    for folder in old:
        os.utime(folder, (0, 0))
    with Collection.open(crash_test.collection) as collection:
        found = collection.check()
        assert [each.part for each in found] == ["file", "file"] and all(
            "without a reference" in str(each) for each in found
        )
        assert all(each.repaired for each in collection.check(repair=True)) and collection.check() == []
    assert not old[0].exists() and not old[1].exists()
    assert old[2].exists() and old[3].exists() and young.exists()
