"""Full and read-only disks: reported photos stay, failures get one line."""

import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from tests.collection.test_activate import small_disk
from tests.collection.tiny import RECIPES, tiny_codebook, tiny_extractor, tiny_photos

from homing.collection import Collection, check
from homing.collection.release import Task, refuse_name_clashes
from homing.errors import HomingError


def test_photos_reported_before_the_disk_was_full_are_stored(tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 120)
    with small_disk(tmp_path / "disk", "900k") as disk:
        path, reported = disk / "c.homing", []
        with Collection.create(path, codebook=tiny_codebook(), extractor=tiny_extractor()) as collection:
            for start in range(0, len(photos), 10):
                batch = photos[start : start + 10]
                collection.add(batch[:5], on_outcome=reported.append)
                collection.activate(batch[5:], disk / "out", recipe=RECIPES[0], on_outcome=reported.append)
        done = [outcome for outcome in reported if outcome.state != "failed"]
        failed = [outcome for outcome in reported if outcome.state == "failed"]
        assert len(done) > 10
        assert len(failed) > 10
        assert not any(each.photo in each.reason or "\n" in each.reason for each in failed)
        shutil.copytree(disk, tmp_path / "moved")  # to a disk with free space
        findings = check(path, extractor=tiny_extractor())
        assert {finding.part for finding in findings} <= {"index"}, findings
        with Collection.open(tmp_path / "moved" / "c.homing", extractor=tiny_extractor()) as again:
            for outcome in done:
                assert again.search(outcome.photo, k=1)[0].photo == outcome.photo
                assert outcome.released is None or Path(outcome.released).stat().st_size > 0
            assert [each.state for each in again.add(failed[-1].photo)] in (["added"], ["known"])


def test_a_disk_that_cannot_be_written_gets_one_line(tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 3)
    with small_disk(tmp_path / "disk", "8m") as disk:
        with Collection.create(disk / "c.homing", codebook=tiny_codebook(), extractor=tiny_extractor()) as collection:
            collection.add(photos[:2])
            collection.search(photos[0])
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(HomingError, match=r"cannot open the catalog .*catalog\.sqlite"):
            Collection.open(disk / "c.homing", extractor=tiny_extractor())
        with pytest.raises(HomingError, match="cannot create a collection at"):
            Collection.create(disk / "d.homing", codebook=tiny_codebook())
        with pytest.raises(HomingError, match=r"cannot open the catalog .*: unable to open"):
            check(disk / "c.homing")
        with pytest.raises(HomingError, match="cannot be changed: Read-only file system"):
            check(disk / "c.homing", repair=True)
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        assert check(disk / "c.homing") == []


def test_a_locked_catalog_gets_one_line(tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 1)
    with Collection.create(tmp_path / "c.homing", codebook=tiny_codebook(), extractor=tiny_extractor()) as collection:
        collection.storage._database.execute("PRAGMA busy_timeout = 100")
        with closing(sqlite3.connect(tmp_path / "c.homing" / "catalog.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            (outcome,) = collection.add(photos)
        assert outcome.state == "failed"
        assert outcome.reason == "the catalog cannot be written: database is locked"
        assert [each.state for each in collection.add(photos)] == ["added"]


def test_targets_that_differ_only_in_case_are_rejected(tmp_path: Path) -> None:
    tasks = [Task(tmp_path / name, tmp_path / "out" / name) for name in ("é.png", "b.png", "e\u0301.PNG")]
    with pytest.raises(HomingError, match=r"é\.png and .*PNG would both be written to"):
        refuse_name_clashes(tasks)
    refuse_name_clashes(tasks[:2])
