"""Servers killed or stopped under load: acknowledged photos are kept, accepted requests are answered."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
from pathlib import Path

import httpx
import pytest
from tests.service.conftest import REFERENCES
from tests.service.server_kills import CrashTest
from tests.service.server_process import serve

from homing.collection import Collection

pytestmark = pytest.mark.slow


@pytest.fixture(params=["killed.homing", "killed.lance"])
def crash_test(request: pytest.FixtureRequest, template: Path, photos: Path, tmp_path: Path) -> CrashTest:
    """A test of a collection in a folder, or of one in Lance with the same references."""
    where = tmp_path / request.param
    if where.suffix == ".lance":
        with Collection.create(where, with_distractors=True) as collection:
            collection.add([photos / name for name in REFERENCES])
    else:
        shutil.copytree(template, where)
    return CrashTest(tmp_path / "photos", where)


def test_nothing_acknowledged_is_lost_by_kills(crash_test: CrashTest) -> None:
    for number in range(10):
        if number >= 3 and {each.released is None for each in crash_test.acknowledged} == {True, False}:
            break  # at least three kills; more on a machine so busy that none came after an activation
        crash_test.run_and_signal(signal.SIGKILL)
    assert {each.released is None for each in crash_test.acknowledged} == {True, False}
    with serve(crash_test.collection) as served, httpx.Client(base_url=served.address, timeout=60) as client:
        for each in crash_test.acknowledged[-20:]:
            files = {"photo": (each.photo.name, each.photo.read_bytes())}
            assert client.post("/v1/search?k=1", files=files).json()["matches"][0]["id"] == each.id
            if each.released:
                assert client.get(f"/v1/photos/{each.id}/released").status_code == 200


@pytest.mark.parametrize(
    ("crash_test", "by"),
    [("killed.homing", signal.SIGTERM), ("killed.homing", signal.SIGINT), ("killed.lance", signal.SIGTERM)],
    indirect=["crash_test"],
)
def test_accepted_requests_are_answered_before_shutdown(crash_test: CrashTest, by: signal.Signals) -> None:
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
