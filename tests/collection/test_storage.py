"""All storages do the same: in SQLite, in Lance, and in memory, which is added from outside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import numpy as np
import pytest
from tests.collection.memory_storage import MemoryStorage
from tests.collection.tiny import tiny_codebook
from tests.conftest import descriptors

from homing import _imports
from homing._io.paths import Address, location
from homing.collection import storage as storages
from homing.collection.outcome import Findings
from homing.collection.references import NewPhotos, ReferenceQuery, StoredRelease
from homing.collection.storage import Parts, Storage, create_storage, open_storage, storage_at
from homing.errors import BusyError, CollectionError, NotFoundError

BOOK = tiny_codebook("IVF8,PQ12x8")  # of a family that Lance supports
ROWS = descriptors(12, seed=3, dim=BOOK.dim)
CODES = BOOK.encode(ROWS)
KINDS = ["sqlite", "lance", "memory"]


def address(kind: str, tmp_path: Path, name: str = "c") -> Path | Address:
    """A new location whose collection has a storage of this kind."""
    if kind == "memory":
        return Address(f"memory://{uuid4().hex}")
    return tmp_path / (f"{name}.lance" if kind == "lance" else name)


@pytest.fixture(params=KINDS)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Path | Address:
    """A location for each kind of storage."""
    return address(request.param, tmp_path)


@pytest.fixture
def storage(where: Path | Address) -> Iterator[Storage]:
    """An empty storage."""
    create_storage(where, Parts(BOOK))
    with closing(open_storage(where)) as opened:
        yield opened


def sha(number: int) -> str:
    return f"{number:064x}"


def photos(*numbers: int, folder: str = "/photos") -> NewPhotos:
    """New photos whose hashes and sources are numbers, with the rows of the same numbers."""
    chosen = list(numbers)
    sources = [f"{folder}/{number}.jpg" for number in chosen]
    return NewPhotos([sha(number) for number in chosen], sources, CODES[chosen], ROWS[chosen].numpy())


def released(photo: int, name: str, state: str = "activated", vector: int | None = None) -> StoredRelease:
    """A release of a photo; `vector` is the number of the row that is the descriptor of its file."""
    half = None if vector is None else ROWS[vector].numpy().astype(np.float16).tobytes()
    return StoredRelease(
        photo, f"/out/{name}", state, name.ljust(64, "0"), "recipe", 44.0, 0.99, 8.0, None, vector=half
    )


def release(storage: Storage, *args: object) -> None:
    """Plan a release and confirm it."""
    storage.plan_releases([released(*args)])
    storage.confirm_releases([released(*args)])


def test_known_photos_are_skipped(storage: Storage) -> None:
    first = storage.add(photos(0, 1, 2))
    assert len(set(first)) == 3 and None not in first
    second = storage.add(photos(3, 1, 4, 3))
    assert [number is None for number in second] == [False, True, False, True]
    assert storage.ids_of([sha(1), sha(9)]) == {sha(1): first[1]}
    assert (storage.find(sha(2)), storage.find(sha(9))) == (first[2], None)
    assert storage.hashes_of([first[0], 7_777]) == {first[0]: sha(0)}
    assert list(storage.hashes_of([first[0], 7_777, 0, -1, 10**30])) == [first[0]]
    assert storage.add(photos()) == []


def test_references_are_removed_with_their_releases(storage: Storage) -> None:
    one, two, three = storage.add(photos(0, 1, 2))
    release(storage, two, "b.jpg", "activated", 5)
    assert storage.find_released(released(two, "b.jpg").sha256) == two
    assert storage.remove([two, 999, three]) == [(two, "/photos/1.jpg", "/out/b.jpg"), (three, "/photos/2.jpg", None)]
    assert storage.remove([two]) == []
    assert storage.find_released(released(two, "b.jpg").sha256) is None and storage.find(sha(1)) is None
    with pytest.raises(NotFoundError):
        storage.sources_and_states([one, two])
    assert storage.counts() == {"photos": 1, "activated": 0, "unchanged": 0}
    (again,) = storage.add(photos(1))
    assert again not in (one, two, three), "ids are never reused"
    assert storage.source_and_state(again) == ("/photos/1.jpg", "passive")


def test_references_are_replaced(storage: Storage) -> None:
    (one,) = storage.add(photos(0))
    (two,) = storage.add(photos(1), replaces=[one])
    assert list(storage.hashes_of([one, two])) == [two]


def test_sources_are_found_and_updated(storage: Storage) -> None:
    one, two = storage.add(photos(0, 1, folder="/a"))
    (three,) = storage.add(photos(2, folder="/a/b's"))
    (four,) = storage.add(photos(3, folder="/ab"))
    assert storage.find_by_source("/a/b's/2.jpg") == [(three, sha(2))]
    assert storage.find_in_folder("/a") == storage.find_in_folder("/a/") == sorted([one, two, three])
    assert storage.first_and_last_source() == ("/a/0.jpg", "/ab/3.jpg")
    assert not storage.update_source(four, "/elsewhere/3.jpg", "/x/3.jpg")
    assert storage.update_source(four, "/ab/3.jpg", "/x/it's.jpg")
    assert storage.source_and_state(four) == ("/x/it's.jpg", "passive") and storage.find(sha(3)) == four


def test_states_and_descriptors_follow_releases(storage: Storage) -> None:
    one, two, three = storage.add(photos(0, 1, 2))
    release(storage, one, "a.jpg", "activated", 7)
    release(storage, one, "a.png", "unchanged")
    release(storage, two, "b.jpg", "unchanged")
    storage.plan_releases([released(three, "c.jpg")])
    states = {number: state for number, (_, state) in storage.sources_and_states([one, two, three]).items()}
    assert states == {one: "activated", two: "unchanged", three: "passive"}
    assert storage.counts() == {"photos": 3, "activated": 1, "unchanged": 1}
    assert storage.passive() == [("/photos/2.jpg", sha(2))]
    found = storage.descriptors(np.array([one, two]))
    assert [len(found[number]) for number in (one, two)] == [2, 1]
    np.testing.assert_allclose(found[one], ROWS[[0, 7]].numpy(), atol=1e-3)
    storage.delete_released_descriptor(one, released(one, "a.jpg").sha256)
    assert len(storage.descriptors(np.array([one]))[one]) == 1


def test_releases_are_planned_confirmed_and_found(storage: Storage) -> None:
    (one,) = storage.add(photos(0))
    row = released(one, "a.jpg", vector=7)
    storage.plan_releases([row])
    found = storage.find_release(one, row.sha256, row.path)
    assert found == storage.find_release(one, row.sha256, "/out/other.jpg"), "its folder may have been moved"
    assert found._replace(changed="") == row and found.changed
    assert storage.find_release(one, sha(5), row.path) is None
    assert storage.last_release(one) is None, "it is not written yet"
    storage.confirm_releases([row])
    storage.confirm_releases([row])
    storage.plan_releases([row._replace(recipe="other")])  # confirmed, it stays so
    assert storage.last_release(one).recipe in ("recipe", "other") and storage.counts()["activated"] == 1
    release(storage, one, "z.jpg", "unchanged")
    assert storage.last_release(one).path == "/out/a.jpg", "an activated file comes first"
    ((first, second),) = storage.releases()
    assert [(each.photo, each.path, each.written) for each in (first, second)] == [
        (one, "/out/a.jpg", 1),
        (one, "/out/z.jpg", 1),
    ]
    assert first.vector is not None and second.vector is None
    assert [row for rows in storage.releases([one]) for row in rows] == [first, second]
    assert [row for rows in storage.releases([one + 999]) for row in rows] == []


def test_references_are_listed(storage: Storage) -> None:
    ids = [storage.add(photos(number, folder="/Ärger" if number % 2 else "/photos"))[0] for number in range(6)]
    release(storage, ids[1], "a.jpg")
    release(storage, ids[1], "a.png")
    listed = list(storage.references(ReferenceQuery()))
    assert [each.id for each in listed] == ids
    assert [each.id for each in storage.references(ReferenceQuery(), newest_first=True)] == ids[::-1]
    page = ReferenceQuery(after=ids[1], limit=2)
    assert [each.id for each in storage.references(page)] == ids[2:4]
    assert [each.id for each in storage.references(page, newest_first=True)] == ids[:1]
    assert [each.id for each in storage.references(ReferenceQuery(state="activated"))] == [ids[1]]
    assert [each.id for each in storage.references(ReferenceQuery(name_contains="3.JPG"))] == [ids[3]]
    assert (storage.count(), storage.count("5"), storage.count("", "passive")) == (6, 1, 5)
    assert storage.reference(ids[1]) == listed[1]
    assert {each.path for each in listed[1].releases} == {"/out/a.jpg", "/out/a.png"}
    with pytest.raises(NotFoundError, match="no reference has the id"):
        storage.reference(ids[-1] + 1)


def test_the_index_follows_the_references(storage: Storage) -> None:
    ids = storage.add(photos(0, 1, 2))
    before, index = storage.revision, storage.index()
    assert len(index) == 3
    assert sorted(index.sample_ids(9, below=1 << 48).tolist()) == sorted(ids)
    release(storage, ids[0], "a.jpg", "activated", 7)
    assert storage.revision == before, "a release changes no code"
    storage.remove([ids[1]])
    storage.add(photos(3, 4))
    assert storage.revision > before
    distances, found = storage.index().search(ROWS[:5], 4, probes=8)
    assert sorted(found[0].tolist()) == sorted(storage.ids_of([sha(number) for number in (0, 2, 3, 4)]).values())
    storage.save_index()
    with closing(storage.reopen()) as again:
        expected = again.index().search(ROWS[:5], 4, probes=8)
        np.testing.assert_array_equal(expected[1], found)
        np.testing.assert_allclose(expected[0], distances, atol=2e-6)


def test_a_code_is_replaced(storage: Storage) -> None:
    one, two = storage.add(photos(0, 1))
    storage.set_code(one, CODES[5], ROWS[5].numpy())
    rows = {row.id: row for batch in storage.valid_rows() for row in batch}
    assert rows[one].code == CODES[5].tobytes() and rows[two].code == CODES[1].tobytes()
    assert storage.hashes_of([one]) == {one: sha(0)}
    assert storage.index().search(ROWS[5:6], 1, probes=8)[1].tolist() == [[one]]


def test_everything_is_copied_from_one_storage_to_another(where: Path | Address, tmp_path: Path) -> None:
    for kind in KINDS:
        source, target = address(kind, tmp_path, "from"), location(f"{where}-{kind}")
        target = target if isinstance(target, Address) else target.with_name(f"to-{kind}-{target.name}")
        create_storage(source, Parts(BOOK))
        with closing(open_storage(source)) as old:
            ids = old.add(photos(*range(5)))
            old.remove(ids[:1])
            release(old, ids[2], "a.jpg", "activated", 7)
            old.plan_releases([released(ids[3], "b.jpg")])
            (rows,), (releases,), last = old.valid_rows(), old.releases(), old.last_id()
            descriptors_of = {row.sha256: old.descriptors(np.array([row.id]))[row.id] for row in rows}
        new_ids: dict[int, int] = {}

        def fill(storage: Storage, rows=rows, releases=releases, last=last, new_ids=new_ids) -> None:
            new_ids |= zip((row.id for row in rows), storage.insert(rows), strict=True)
            storage.insert_releases([row._replace(photo=new_ids[row.photo]) for row in releases])
            storage.reserve_ids(last)

        create_storage(target, Parts(BOOK), fill)
        with closing(open_storage(target)) as new:
            if new.keeps_ids:
                assert all(number == before for before, number in new_ids.items()) and new.last_id() >= last
            (copied,), (copies,) = new.valid_rows(), new.releases()
            assert {row.sha256: row[2:] for row in copied} == {row.sha256: row[2:] for row in rows}
            assert sorted(row[1:] for row in copies) == sorted(row[1:] for row in releases)
            for sha256, number in new.ids_of(list(descriptors_of)).items():
                np.testing.assert_allclose(
                    new.descriptors(np.array([number]))[number], descriptors_of[sha256], atol=1e-3
                )
            assert {number for batch in new.hashes() for number in batch} == set(new_ids.values())
            assert new.add(photos(6))[0] not in new_ids.values()
            findings = Findings(repair=False)
            assert new.check(findings) and findings.found == []


def test_writers_are_locked_out_or_need_no_lock(storage: Storage) -> None:
    with storage.lock_for_writing():
        if storage.locks_writers:
            with pytest.raises(BusyError), storage.lock_for_writing():
                raise AssertionError
        else:
            with storage.lock_for_writing():
                storage.add(photos(0))


def test_others_see_changes(storage: Storage) -> None:
    with closing(storage.reopen()) as other, other.read_transaction():
        pass
    with closing(storage.reopen()) as other:
        (one,) = storage.add(photos(0))
        other.refresh()
        assert other.find(sha(0)) == one and len(other.index()) == 1


def test_versions_are_listed_or_refused(storage: Storage) -> None:
    storage.add(photos(0, 1))
    if storage.version is None:
        for unsupported in (storage.versions, storage.compact):
            with pytest.raises(CollectionError, match="has no versions; only collections in Lance have"):
                unsupported()
        with pytest.raises(CollectionError, match="has no versions"):
            open_storage(storage.root, version=1)
    else:
        storage.compact()
        assert storage.versions()[-1].photos == 2
        with closing(open_storage(storage.root, version=1)) as first:
            assert first.counts()["photos"] == 0


def test_a_storage_is_created_once(storage: Storage) -> None:
    with pytest.raises(CollectionError, match="already is a collection"):
        create_storage(storage.root, Parts(BOOK))


def test_a_storage_is_added_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    where = Address("other://somewhere/photos")
    assert storage_at(Address("s3://bucket/photos"))[0].__name__ == "LanceStorage"
    assert storage_at(Path("photos"))[0].__name__ == "SqliteStorage"
    monkeypatch.setattr(storages, "_KINDS", list(storages._KINDS))

    class Other(MemoryStorage):
        @classmethod
        def accepts(cls, where: Path | Address) -> bool:
            return isinstance(where, Address) and where.scheme == "other"

    loaded: list[str] = []

    def load() -> None:  # what importing the module of an entry point does
        if not loaded:
            storages.register_storage(Other)
        loaded.append("other")

    monkeypatch.setattr(_imports, "entry_points", lambda group: [SimpleNamespace(load=load)] if group else [])
    _imports.load_entry_points.cache_clear()
    assert storage_at(where) == (Other, where)
