"""One writer and any number of concurrent readers, in real processes and threads."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from PIL import Image

from homing.collection import Collection
from homing.collection.storage.sqlite import SqliteStorage
from homing.errors import BusyError, CollectionError
from homing.extractors import Extractor, describe_images
from homing.photo import Photo

# Adds a photo, reports it, and holds the lock until it is killed or gets a line of input.
WRITER = """
import sys
from homing.collection import Collection

def report(outcome):
    print(outcome.state, flush=True)
    sys.stdin.readline()

with Collection.open(sys.argv[1]) as collection:
    collection.add(sys.argv[2], on_outcome=report)
"""
# Adds and removes a folder repeatedly, at least three times.
CHANGING = """
import sys, time
from itertools import count
from pathlib import Path
from homing.collection import Collection

with Collection.open(sys.argv[1]) as collection:
    for round in count(1):
        assert {each.state for each in collection.add(sys.argv[2])} == {"added"}
        time.sleep(0.5)
        assert {each.state for each in collection.remove(sys.argv[2])} == {"removed"}
        if round >= 3 and Path(sys.argv[1], "enough").exists():
            break
        time.sleep(0.5)
"""
READING = """
import sys
from pathlib import Path
import torch
from homing.collection import Collection

sys.path.insert(0, sys.argv[3])
from tests.collection.test_writers import check

queries, seen = torch.load(sys.argv[2]), set()
with Collection.open(sys.argv[1]) as collection:
    while not Path(sys.argv[1], "stop").exists():
        seen.add(check(collection, queries))
        if len(seen) > 1:
            Path(sys.argv[1], "seen").touch()
"""


@pytest.fixture
def shared(tmp_path: Path, photos: Path, extractor: Extractor) -> Path:
    """A collection of four photos."""
    with Collection.create(tmp_path / "c.homing", extractor=extractor) as collection:
        collection.add(photos)
    return tmp_path / "c.homing"


@pytest.fixture
def others(tmp_path: Path, photos: Path) -> Path:
    """A folder of photos to add and remove."""
    (tmp_path / "others").mkdir()
    with Image.open(photos / "chelsea.png") as cat:
        for number in range(12):
            cat.crop((10 * number, 5 * number, 10 * number + 150, 5 * number + 150)).save(
                tmp_path / "others" / f"{number}.png"
            )
    return tmp_path / "others"


@contextmanager
def running(script: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    job = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with job:
        try:
            yield job
        finally:
            job.kill()


def check(collection: Collection, queries: torch.Tensor) -> int:
    """Search for the photos that stay. Returns the number of references found."""
    results = collection.search_descriptors(queries, k=100)
    for position, matches in enumerate(results):
        names = [Path(match.photo).name for match in matches]
        assert len(set(names)) == len({match.id for match in matches}) == len(names)
        assert matches[0].id == position + 1
        assert {"chelsea.png", "camera.png", "rocket.jpg", "flower.jpg"} <= set(names)
        assert [match.distance for match in matches] == sorted(match.distance for match in matches)
    rerank = collection.search_descriptors(queries, k=4, rerank=100)
    assert all(match.compared == "descriptor" for matches in rerank for match in matches)
    time.sleep(0.01)  # leaves the cores to the writer
    return len(results[0])


@pytest.mark.slow
def test_a_second_writing_process_is_rejected_at_once(
    shared: Path, others: Path, photos: Path, extractor: Extractor
) -> None:
    with running(WRITER, shared, others) as writer, Collection.open(shared, extractor=extractor) as collection:
        assert writer.stdout is not None and writer.stdin is not None
        assert writer.stdout.readline() == "added\n"
        jobs: list[Callable[[], object]] = [
            lambda: collection.add(photos),
            lambda: collection.remove(1),
            lambda: collection.activate(photos, shared.parent / "out"),
            lambda: collection.activate_passive(shared.parent / "out"),
        ]
        for job in jobs:
            started = time.perf_counter()
            with pytest.raises(BusyError, match=r"another process is changing .*c\.homing; try again when"):
                job()
            assert time.perf_counter() - started < 20, "the other process never ends"
        assert collection.search(photos / "flower.jpg", k=1)[0].photo == str(photos / "flower.jpg")
        assert collection.info().photos > 4, "additions of the other process are found"
        writer.kill()
        writer.wait()
        assert [each.state for each in collection.remove(1)] == ["removed"], "a killed process holds no lock"


def test_a_second_writing_thread_is_rejected(shared: Path, others: Path, photos: Path, extractor: Extractor) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def wait(_: object) -> None:
        reached.set()
        go_on.wait(120)

    with Collection.open(shared, extractor=extractor) as one, Collection.open(shared, extractor=extractor) as two:
        thread = threading.Thread(target=one.add, args=[others], kwargs={"on_outcome": wait})
        thread.start()
        assert reached.wait(120)
        for each in (one, two):
            with pytest.raises(BusyError):
                each.remove(1)
            assert each.search(photos / "flower.jpg", k=1)[0].photo == str(photos / "flower.jpg")
        go_on.set()
        thread.join()
        assert [each.state for each in two.remove(others)] == ["removed"] * 12
        assert len(one.index) == 4


def test_a_job_within_a_job_is_rejected(shared: Path, others: Path, extractor: Extractor) -> None:
    with Collection.open(shared, extractor=extractor) as opened:
        with pytest.raises(BusyError):
            opened.add(others, on_outcome=lambda _: opened.remove(1))
        assert [each.state for each in opened.remove(1)] == ["removed"], "the lock was not released"


@pytest.mark.slow
def test_readers_get_complete_results_during_writes(
    shared: Path, others: Path, photos: Path, tmp_path: Path, extractor: Extractor
) -> None:
    queries = describe_images(extractor, [Photo.load(path).pixels() for path in sorted(photos.iterdir())])
    torch.save(queries, tmp_path / "queries.pt")
    seen: set[int] = set()
    done = threading.Event()

    def read(collection: Collection) -> None:
        while not done.is_set():
            seen.add(check(collection, queries))

    root = Path(__file__).parents[2]
    with (
        running(CHANGING, shared, others) as writer,
        running(READING, shared, tmp_path / "queries.pt", root) as reader,
        Collection.open(shared, extractor=extractor) as collection,
        ThreadPoolExecutor(3) as pool,
    ):
        readers = [pool.submit(read, collection) for _ in range(3)]
        deadline = time.monotonic() + 300
        # References are added and removed until all readers have noticed; on a busy machine a process starts slowly.
        while not ((shared / "seen").exists() and len(seen) > 1) and time.monotonic() < deadline:
            if reader.poll() is not None or writer.poll() is not None or any(each.done() for each in readers):
                break  # the error is reported below
            time.sleep(0.05)
        (shared / "enough").touch()
        _, reported = writer.communicate(timeout=300)
        assert collection.add(others)[0].state == "added"  # while threads of this process read
        assert len(collection.remove(others)) == 12
        done.set()
        (shared / "stop").touch()
        for each in readers:
            each.result()
        _, errors = reader.communicate(timeout=300)
    assert (writer.returncode, reported) == (0, "")
    assert (reader.returncode, errors) == (0, "")
    assert (shared / "seen").exists() and len(seen) > 1, "no reader noticed an addition or removal"
    assert min(seen) == 4 and max(seen) <= 16


def test_a_folder_that_cannot_be_locked_is_named(tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match="does not exist any more"), SqliteStorage.lock(tmp_path / "nowhere"):
        pass
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "writer.lock").mkdir()
    with pytest.raises(CollectionError, match="cannot be changed: Is a directory"), SqliteStorage.lock(tmp_path):
        pass
