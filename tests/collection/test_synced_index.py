"""An open index equals the catalog: after a repair, with other threads, and during writes."""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import torch
from tests.collection.tiny import tiny_codebook, tiny_extractor, tiny_photos

from homing.collection import Collection
from homing.collection.storage.sqlite import SqliteStorage
from homing.errors import CollectionError
from homing.extractors import describe_images
from homing.photo import Photo

PHOTOS = 6
QUERY = torch.full((1, 108), 108**-0.5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed collection of six photos with a snapshot."""
    with Collection.create(tmp_path / "c.homing", codebook=tiny_codebook(), extractor=tiny_extractor()) as collection:
        collection.add(tiny_photos(tmp_path / "photos", PHOTOS))
        assert len(collection.index) == PHOTOS
    return tmp_path / "c.homing"


@pytest.fixture
def opened(path: Path) -> Iterator[Collection]:
    with Collection.open(path, extractor=tiny_extractor()) as collection:
        yield collection


def contents(collection: Collection) -> dict[int, bytes]:
    ids, codes = collection.index.contents()
    assert len(set(ids.tolist())) == len(ids)
    return dict(zip(ids.tolist(), map(bytes, codes), strict=True))


def catalog_codes(collection: Collection) -> dict[int, bytes]:
    return dict(collection.storage._fetch_all("SELECT id, code FROM photos"))


def execute(collection: Collection, statement: str, *values: object) -> None:
    """Change the catalog directly."""
    with collection.storage._transaction() as change:
        change.execute(statement, values)


def test_open_indexes_and_their_snapshots_follow_a_repair(path: Path) -> None:
    right = Collection.open(path, extractor=tiny_extractor())
    with right, Collection.open(path, extractor=tiny_extractor()) as other:
        before = catalog_codes(right)
        execute(right, "UPDATE photos SET code = zeroblob(7) WHERE id = 3")
        (path / "index.faiss").unlink()
        assert contents(right)[3] == contents(other)[3] == bytes(7)
        assert all(finding.repaired for finding in right.check(repair=True))
        assert contents(right) == contents(other) == catalog_codes(right) == before
    with Collection.open(path, extractor=tiny_extractor()) as later:
        assert contents(later) == before
        assert later.check() == []


@pytest.mark.slow
def test_invalid_codes_discard_the_incomplete_index(path: Path, opened: Collection) -> None:
    (path / "index.faiss").unlink()
    code = catalog_codes(opened)[5]
    execute(opened, "UPDATE photos SET code = x'ff000000000000' WHERE id = 5")
    for _ in range(2):
        with pytest.raises(CollectionError, match="codes that do not fit its codebook"):
            contents(opened)
    execute(opened, "UPDATE photos SET code = ? WHERE id = 5", code)
    assert contents(opened) == catalog_codes(opened)


@pytest.mark.parametrize("harm", ["unreadable", "of a later FAISS", "of no revision"])
def test_an_unreadable_snapshot_is_rebuilt(path: Path, opened: Collection, harm: str) -> None:
    if harm == "of no revision":
        opened.storage.set_metadata(snapshot_revision="many")
    else:
        (path / "index.faiss").unlink()
        (path / "index.faiss").symlink_to("/proc/self/mem")  # reading its first byte is an I/O error
        if harm == "of a later FAISS":
            (path / "index.faiss").unlink()
            (path / "index.faiss").write_bytes(b"IxNw and unknown bytes")
            opened.storage.set_metadata(snapshot_sha256=hashlib.sha256(b"IxNw and unknown bytes").hexdigest())
    assert contents(opened) == catalog_codes(opened)
    opened.close()
    with Collection.open(path, extractor=tiny_extractor()) as again:
        assert again.check() == []


def test_readers_save_snapshots_during_writes(path: Path, opened: Collection) -> None:
    (path / "index.faiss").unlink()
    with SqliteStorage.lock(path):
        assert len(opened.index) == PHOTOS
        opened.close()
    assert (path / "index.faiss").is_file()


@contextmanager
def repeated_in_threads(work: Callable[[], object]) -> Iterator[None]:
    """Repeat `work` in two threads."""
    done = threading.Event()

    def repeat() -> None:
        while not done.is_set():
            work()

    with ThreadPoolExecutor(2) as pool:
        threads = [pool.submit(repeat) for _ in range(2)]
        try:
            yield
        finally:
            done.set()
        for thread in threads:
            thread.result()


def test_a_photo_or_its_replacement_is_always_found(path: Path, opened: Collection, tmp_path: Path) -> None:
    path_to_replace, *_ = (tmp_path / "photos").iterdir()
    versions = [each.read_bytes() for each in tiny_photos(tmp_path / "others", 4, seed=9)]
    query = describe_images(tiny_extractor(), [Photo.load(path_to_replace).pixels()])

    def read() -> None:
        names = [match.photo for match in opened.search_descriptors(query, k=100)[0]]
        assert names.count(str(path_to_replace)) == 1 and len(names) == PHOTOS

    with repeated_in_threads(read), Collection.open(path, extractor=tiny_extractor()) as writer:
        for number in range(100):
            path_to_replace.write_bytes(versions[number % 4] + bytes(number))
            assert [each.state for each in writer.add(path_to_replace, replace=True)] == ["replaced"]


def test_calls_during_close_get_one_line(path: Path) -> None:
    for job in ("search", "info") * 10:
        collection = Collection.open(path, extractor=tiny_extractor())
        call = partial(collection.search_descriptors, QUERY) if job == "search" else collection.info

        def call_repeatedly(call: Callable[[], object] = call) -> None:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                call()

        with ThreadPoolExecutor(2) as pool:
            threads = [pool.submit(call_repeatedly) for _ in range(2)]
            time.sleep(0.01)
            collection.close()
            for thread in threads:
                with pytest.raises(CollectionError, match="closed"):
                    thread.result()


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM metadata WHERE name = 'revision'",
        "UPDATE metadata SET value = 'many' WHERE name = 'revision'",
        "INSERT INTO metadata VALUES ('codes_revision', 'often')",
    ],
)
def test_an_invalid_revision_is_reported_and_repaired(opened: Collection, harm: str) -> None:
    opened.remove(2)
    execute(opened, harm)
    with pytest.raises(
        CollectionError, match=r"has no valid revision number; repair it with: homing check .* --repair"
    ):
        opened.search_descriptors(QUERY)
    (finding,) = opened.check()
    assert (finding.part, finding.repaired) == ("catalog", False)
    assert [finding.repaired for finding in opened.check(repair=True)] == [True]
    assert opened.check() == []
    opened.remove(3)
    assert set(contents(opened)) == {1, 4, 5, 6}
