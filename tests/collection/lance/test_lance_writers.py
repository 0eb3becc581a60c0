"""Concurrent writers to one collection in Lance, some of them killed: each photo is stored once."""

from __future__ import annotations

import hashlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
from tests.collection.tiny import RECIPES, tiny_codebook, tiny_photos

from homing.collection import Collection, migrate, switch
from homing.collection.references import NewPhotos
from homing.collection.storage import _lance_rows
from homing.collection.storage._lance_table import row_ids_in
from homing.collection.storage.lance import LanceStorage
from homing.collection.storage.layout import make_current
from homing.errors import CollectionError
from homing.extractors import describe_images
from homing.photo import Photo, as_photos

WRITER = """
import os, sys, time
from tests.collection.tiny import RECIPES, tiny_extractor
from homing.collection import Collection
where, photos, out, start = sys.argv[1:]
print("ready", flush=True)
while not os.path.exists(start):
    time.sleep(0.01)
with Collection.open(where, extractor=tiny_extractor()) as collection:
    if out:
        report = lambda each: print(each.photo, flush=True)
        outcomes = collection.activate(photos, out, recipe=RECIPES[0], on_outcome=report)
    else:
        outcomes = collection.add(photos, on_outcome=lambda each: print(each.photo, flush=True))
    assert not [each.reason for each in outcomes if each.state == "failed"], outcomes
"""


def _start(where: object, photos: Path, out: object, start: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, *map(str, (where, photos, out, start))]
    root = Path(__file__).parents[3]
    return subprocess.Popen(command, cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _end(running: subprocess.Popen[str]) -> list[str]:
    reported, problems = running.communicate(timeout=300)
    assert running.returncode in (0, -signal.SIGKILL), problems
    return reported.split()


@pytest.mark.slow
def test_photos_added_by_several_processes_are_stored_once(lance_collection: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 40)
    running = [_start(lance_collection.root, tmp_path / "photos", "", tmp_path / "go") for _ in range(3)]
    for each in running:
        assert each.stdout is not None and each.stdout.readline() == "ready\n"
    (tmp_path / "go").touch()
    for each in running:
        assert sorted(_end(each)) == sorted(map(str, photos))
    assert lance_collection.info().photos == 40 and lance_collection.check() == []
    assert {lance_collection.search(photo, k=1)[0].photo for photo in photos} == set(map(str, photos))


def test_the_second_writer_removes_its_duplicates(lance_collection: Collection, opening, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 5)
    with opening(lance_collection.root) as other:
        one, two = lance_collection.storage, other.storage
        new = NewPhotos(
            [hashlib.sha256(photo.read_bytes()).hexdigest() for photo in photos],
            [str(photo) for photo in photos],
            *_described(lance_collection, photos),
        )
        # Both looked up the photos before either one wrote them.
        texts = [(*each, datetime.now(timezone.utc)) for each in zip(new.hashes, new.sources, strict=True)]
        rows = two._to_table(texts, new.codes, new.descriptors)
        first = one.add(new)
        two.table.latest().insert(rows, mode="append")
        assert [len(ids) for ids in two._all_ids_of(new.hashes).values()] == [2] * 5
        (finding, *others) = other.check()
        assert "has 2 references" in finding.problem and len(others) == 4
        assert all(each.repaired for each in other.check(repair=True)) and other.check() == []
        assert list(two.ids_of(new.hashes).values()) == first
        assert two.add(new) == [None] * 5


def test_simultaneous_inserts_leave_one_reference(lance_collection: Collection, opening, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 30)
    hashes = [hashlib.sha256(photo.read_bytes()).hexdigest() for photo in photos]
    new = NewPhotos(hashes, [str(photo) for photo in photos], *_described(lance_collection, photos))
    others = [opening(lance_collection.root) for _ in range(3)]
    barrier = Barrier(3)

    def add(collection: Collection) -> list[int | None]:
        assert collection.storage.ids_of(hashes) == {}
        barrier.wait(60)
        return collection.storage.add(new)

    with ThreadPoolExecutor(3) as pool:
        reported = list(pool.map(add, others))
    assert lance_collection.info().photos == 30 and lance_collection.check() == []
    stored = list(lance_collection.storage.ids_of(hashes).values())
    for position, number in enumerate(stored):  # one writer reports each photo as added: the one whose row remains
        assert sorted(ids[position] or 0 for ids in reported) == [0, 0, number]


def test_references_added_right_after_a_switch_remain(
    local_collection: Collection, opening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos, root = tiny_photos(tmp_path / "photos", 3), local_collection.root
    local_collection.add(photos[0])
    migrate(root, tiny_codebook("IVF4,PQ12x8"))

    def add_around(where: Path) -> None:  # other processes, before and after the switch
        local_collection.add(photos[1])
        make_current(where)
        with opening(root) as now:
            now.add(photos[2])

    def latest_hashes(storage: LanceStorage) -> Iterator[dict[int, str]]:  # the switch may load what others add
        storage.refresh()
        return hashes(storage)

    hashes = LanceStorage.hashes
    monkeypatch.setattr(LanceStorage, "hashes", latest_hashes)
    monkeypatch.setattr("homing.collection.migration.make_current", add_around)
    assert switch(root).photos == 3
    with opening(root) as now:
        assert {reference.photo for reference in now.references()} == set(map(str, photos)) and now.check() == []


def test_photos_are_added_even_if_another_job_prevents_a_compaction(
    local_collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def compact(_: LanceStorage) -> None:
        raise CollectionError("preempted by a concurrent transaction")

    monkeypatch.setattr(_lance_rows, "_COMPACT_EVERY", 1)
    monkeypatch.setattr(LanceStorage, "compact", compact)
    outcomes = local_collection.add(tiny_photos(tmp_path / "photos", 2))
    assert [each.state for each in outcomes] == ["added", "added"]
    assert "small files were not merged: preempted" in caplog.text


def test_a_photo_that_another_job_removes_is_released(
    lance_collection: Collection, opening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (photo,) = tiny_photos(tmp_path / "photos", 1)
    add, removed = LanceStorage.add, []

    def add_and_lose(self: LanceStorage, photos: NewPhotos) -> list[int | None]:
        ids = add(self, photos)
        if not removed:
            with opening(lance_collection.root) as other:
                removed.extend(other.remove(photo))
        self.refresh()
        return ids

    monkeypatch.setattr(LanceStorage, "add", add_and_lose)
    outcomes = lance_collection.activate(photo, tmp_path / "out", recipe=RECIPES[0])
    assert [each.state for each in removed] == ["removed"]
    assert [each.state for each in outcomes] == ["activated"]
    assert lance_collection.info().activated == 1


def test_an_upload_that_another_job_added_is_kept(lance_collection: Collection, opening, tmp_path: Path) -> None:
    (photo,) = tiny_photos(tmp_path, 1)
    with opening(lance_collection.root) as other:
        other.add(photo.read_bytes())
    (upload,) = as_photos(photo.read_bytes())
    lance_collection.uploads.delete_unless_source(upload, lance_collection.storage)
    assert lance_collection.uploads.path_of(upload).exists()


def test_descriptors_are_read_in_batches(local_collection: Collection, tmp_path: Path, monkeypatch) -> None:
    photos, sizes = tiny_photos(tmp_path, 5), []
    local_collection.add(photos)
    ids = np.array(local_collection.select(tmp_path).ids)
    whole = local_collection.storage.descriptors(ids)
    monkeypatch.setattr(_lance_rows, "MAX_IDS", 2)
    monkeypatch.setattr(_lance_rows, "row_ids_in", lambda ids: sizes.append(len(ids)) or row_ids_in(ids))
    batches = local_collection.storage.descriptors(np.append(ids, 77))
    assert sizes == [2, 2, 2] and batches.keys() == whole.keys()
    assert all(np.array_equal(batches[number], rows) for number, rows in whole.items())


def test_counting_reads_no_releases(local_collection: Collection, opening, tmp_path: Path, monkeypatch) -> None:
    with opening(local_collection.root) as other:
        other.add(tiny_photos(tmp_path, 3))
    monkeypatch.setattr(local_collection.storage, "log", None)
    assert local_collection.storage.count() == 3


def _described(collection: Collection, photos: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    descriptors = describe_images(collection.extractor, [Photo.load(photo).pixels() for photo in photos])
    return collection.codebook.encode(descriptors), descriptors.numpy()


@pytest.mark.slow
def test_photos_reported_by_killed_writers_are_stored(lance_collection: Collection, opening, tmp_path: Path) -> None:
    rng, out = random.Random(0), tmp_path / "out"
    photos = tiny_photos(tmp_path / "photos", 40)
    (tmp_path / "go").touch()
    reported: set[str] = set()
    for _ in range(3):
        running = _start(lance_collection.root, tmp_path / "photos", out, tmp_path / "go")
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        reported |= {running.stdout.readline().strip()} - {""}
        time.sleep(rng.uniform(0, 0.5))
        running.kill()
        reported |= set(_end(running))
    assert reported, "no photo was reported before the kills"
    for photo in reported:
        assert lance_collection.storage.revision and lance_collection.select(photo).ids, (
            f"{photo} was reported and is lost"
        )
    done = lance_collection.activate(photos, out, recipe=RECIPES[0])
    assert {each.state for each in done} <= {"activated", "unchanged"}
    with opening(lance_collection.root) as opened:
        assert opened.info().photos == 40 and opened.info().passive == 0
        assert opened.check() == []
    assert sorted(file.name for file in out.glob("[!.]*")) == sorted(photo.name for photo in photos)
