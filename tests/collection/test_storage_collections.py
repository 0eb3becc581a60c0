"""A collection behaves the same wherever it is stored: in SQLite, in Lance in a folder and in a bucket, in memory."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.collection.test_storage import KINDS, address
from tests.collection.tiny import RECIPES, tiny_codebook, tiny_extractor, tiny_photos
from torch import Tensor

from homing._io.paths import location
from homing.codebooks import Distractors
from homing.collection import Collection, check, delete_previous, migrate, switch
from homing.collection.storage import Parts, create_storage
from homing.errors import CollectionError, NotFoundError
from homing.extractors import describe_images
from homing.photo import Photo

SPEC = "IVF8,PQ12x8"  # of a family that Lance supports
OTHER = "IVF4,PQ12x8"


def opening(where: object, **options: object) -> Collection:
    """Open a collection with the tiny network."""
    return Collection.open(where, extractor=tiny_extractor(), **options)


@pytest.fixture(params=["sqlite", "lance", "lance, searched in its index", "bucket", "memory"])
def stored(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collection]:
    """An empty collection in each storage. Lance searches few references in memory, and many in the dataset."""
    kind = request.param.partition(",")[0]
    if kind == "bucket" or kind != request.param:
        monkeypatch.setattr("homing.indexes.lance.MAX_CODES_IN_MEMORY", 0)
    where = f"{request.getfixturevalue('s3')}/c.lance" if kind == "bucket" else address(kind, tmp_path)
    with Collection.create(where, codebook=tiny_codebook(SPEC), extractor=tiny_extractor()) as collection:
        yield collection


def test_search_results_equal_those_of_the_storage_in_memory(stored: Collection, tmp_path: Path) -> None:
    photos, where = tiny_photos(tmp_path / "photos", 12), address("memory", tmp_path)
    with Collection.create(where, codebook=tiny_codebook(SPEC), extractor=tiny_extractor()) as simple:
        for name, collection in (("one", stored), ("two", simple)):
            assert [each.state for each in collection.add(tmp_path / "photos")] == ["added"] * 12
            assert [each.state for each in collection.add(tmp_path / "photos")] == ["known"] * 12
            done = collection.activate(photos[:4], tmp_path / name, recipe=RECIPES[0])
            assert {each.state for each in done} <= {"activated", "unchanged"}
            again = collection.activate(photos[:4], tmp_path / name, recipe=RECIPES[0])
            assert [each.state for each in again] == [each.state for each in done]
        for options in ({}, {"probes": 1}, {"probes": 3, "rerank": 100}, {"probe_radius": 0.2}, {"variants": True}):
            for photo in photos[:6]:
                assert_same(stored.search(photo, k=5, **options), simple.search(photo, k=5, **options))
        one, two = stored.info(), simple.info()
        assert (one.photos, one.activated, one.unchanged) == (two.photos, two.activated, two.unchanged)
    assert stored.check() == []


def assert_same(one: object, two: object) -> None:
    """Check that two searches found the same references at the same distances."""
    assert [(each.photo, each.state, each.compared) for each in one] == [
        (each.photo, each.state, each.compared) for each in two
    ]
    np.testing.assert_allclose(
        [(each.distance, each.false_match_probability) for each in one],
        [(each.distance, each.false_match_probability) for each in two],
        atol=2e-3,  # descriptors are stored as fp16 or as fp32
    )


def test_distractors_are_found_but_are_no_references(tmp_path: Path) -> None:
    photos, book = tiny_photos(tmp_path / "photos", 9), tiny_codebook(SPEC)
    distractors = Distractors(np.random.default_rng(0).permutation(book.encode(rows_of(photos))), np.arange(9))
    found = []
    for kind in KINDS:
        where = address(kind, tmp_path)
        create_storage(where, Parts(book, distractors))
        with opening(where) as collection:
            collection.add(photos[:3])
            assert collection.info().distractors == 9 and collection.info().photos == 3
            result = collection.search(photos[5], k=12, probes=8)
            assert sum(match.state == "distractor" for match in result) == 9
            assert collection.search(photos[1]).best.photo == str(photos[1]) and collection.check() == []
            found.append(sorted((match.photo, round(match.distance, 5)) for match in result))
    assert found[0] == found[1] == found[2]


def rows_of(photos: list[Path]) -> Tensor:
    """The descriptors of photos."""
    return describe_images(tiny_extractor(), [Photo.load(photo).pixels() for photo in photos])


@pytest.mark.parametrize("kind", KINDS)
def test_an_export_is_imported_into_every_storage(stored: Collection, kind: str, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 6)
    stored.add(photos[:5])
    stored.activate(photos[1:3], tmp_path / "out", recipe=RECIPES[1])
    stored.remove(photos[0])
    assert stored.export(tmp_path / "export").photos == 4
    with Collection.from_export(
        address(kind, tmp_path, "again"), tmp_path / "export", extractor=tiny_extractor()
    ) as again:
        assert_same(again.search(photos[2], k=5), stored.search(photos[2], k=5))
        fields = ("photo", "state", "sha256")
        assert [[getattr(each, name) for name in fields] for each in again.references()] == [
            [getattr(each, name) for name in fields] for each in stored.references()
        ]
        assert again.check() == []
        assert {each.state for each in again.activate(photos[1:3], tmp_path / "out", recipe=RECIPES[1])} <= {
            "activated",
            "unchanged",
        }
        assert again.add(photos[5])[0].state == "added"
    assert stored.export(tmp_path / "faiss", format="faiss").photos == 4


def test_a_code_that_does_not_match_is_found_and_repaired(stored: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 3)
    stored.add(photos)
    (number,) = stored.select(photos[1]).ids
    (vector,) = stored.storage.descriptors(np.array([number]))[number]
    ((code, *_),) = [[row.code for row in rows if row.id == number] for rows in stored.storage.rows()]
    stored.storage.set_code(number, np.frombuffer(code, np.uint8) ^ 0x5A, vector)
    (finding,) = stored.check()
    assert finding.part == "reference" and "does not match its descriptor" in finding.problem
    assert [each.repaired for each in stored.check(repair=True)] == [True]
    assert stored.check() == [] and stored.select(photos[1]).ids == [number]
    assert stored.search(photos[1], k=1)[0].photo == str(photos[1])


def test_released_files_are_checked(stored: Collection, tmp_path: Path) -> None:
    done = stored.activate(tiny_photos(tmp_path / "photos", 3), tmp_path / "out", recipe=RECIPES[1])
    Path(str(done[0].released)).write_bytes(b"another")
    Path(str(done[1].released)).unlink()
    problems = sorted(finding.problem for finding in stored.check(repair=True))
    assert [problem.split(" ", 1)[1] for problem in problems] == [
        f"is not the file that was released for {done[0].photo}",
        "is missing or cannot be read",
    ]
    assert len(check(stored.root, extractor=tiny_extractor())) == 2


def test_activating_does_not_change_the_index(stored: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 3)
    stored.add(photos)
    before = stored.storage.revision
    assert "activated" in {each.state for each in stored.activate(photos, tmp_path / "out", recipe=RECIPES[1])}
    assert stored.storage.revision == before


def test_remove_by_id_path_and_folder(stored: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 4) + tiny_photos(tmp_path / "photos" / "deep", 3, seed=1)
    stored.add(tmp_path / "photos")
    (first,) = stored.select(photos[0]).ids
    stored.activate(photos[0], tmp_path / "out", recipe=RECIPES[1])
    (outcome,) = stored.remove(first)
    assert (outcome.state, outcome.released) == ("removed", str(tmp_path / "out" / photos[0].name))
    assert [each.state for each in stored.remove(photos[1])] == ["removed"]
    assert len(stored.remove(tmp_path / "photos" / "deep")) == 3
    assert [each.state for each in stored.remove([first, "nowhere.jpg"])] == ["failed", "failed"]
    assert stored.info().photos == 2
    assert all(match.photo in map(str, photos[2:4]) for match in stored.search(photos[0], k=10))
    with pytest.raises(NotFoundError):
        stored.storage.source_and_state(first)
    assert stored.add(photos[0])[0].state == "added", "a removed photo can be added again"
    assert stored.select(photos[0]).ids != [first], "under another id"


def test_moved_and_changed_files(stored: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 3)
    stored.add(photos)
    photos[0].rename(tmp_path / "photos" / "it's there.png")
    (moved,) = stored.add(tmp_path / "photos" / "it's there.png")
    assert (moved.state, moved.moved_from) == ("moved", str(photos[0]))
    shutil.copy(tiny_photos(tmp_path / "others", 2, seed=7)[1], photos[1])
    assert [each.state for each in stored.add(photos[1], replace=True)] == ["replaced"]
    assert stored.info().photos == 3
    assert stored.search(photos[1], k=1)[0].photo == str(photos[1])
    assert stored.search(tmp_path / "photos" / "it's there.png", k=1)[0].photo.endswith("it's there.png")


def test_passive_photos_are_activated_later(stored: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 3)
    stored.add(photos)
    stored.activate(photos[0], tmp_path / "out", recipe=RECIPES[0])
    done = stored.activate_passive(tmp_path / "out", recipe=RECIPES[0])
    assert sorted(str(each.photo) for each in done) == sorted(map(str, photos[1:]))
    assert stored.info().passive == 0 and stored.activate_passive(tmp_path / "out", recipe=RECIPES[0]) == []


def test_readers_see_additions_of_other_processes(stored: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 2)
    with opening(stored.root) as reader:
        assert reader.search(photos[0]).matches == ()
        stored.add(photos[0])
        assert reader.search(photos[0], k=1)[0].distance < 0.01
        stored.remove(photos[0])
        assert reader.search(photos[0]).matches == ()


def test_remove_ignores_impossible_ids(stored: Collection, tmp_path: Path) -> None:
    stored.add(tiny_photos(tmp_path / "photos", 1))
    assert [each.state for each in stored.remove([0, -3, 10**30, 1])] == ["removed", "failed", "failed", "failed"]


@pytest.mark.slow
def test_both_generations_can_be_searched_until_the_switch(stored: Collection, tmp_path: Path) -> None:
    photos, root = tiny_photos(tmp_path / "photos", 10), stored.root
    done = stored.activate(photos[:5], tmp_path / "out", recipe=RECIPES[1])
    stored.add(photos[5:9])
    other, counted = tiny_codebook(OTHER), []
    first = migrate(root, other, advance=lambda: counted.append(1))
    assert (first.photos, len(counted), first.missing) == (9, 9, [])
    activated = sum(each.state == "activated" for each in done)
    assert activated > 0 and len(first.gain_kept) + len(first.gain_lost) == activated and first.gain_unknown == []
    assert stored.info().next_codebook == other.name
    with opening(root, generation="next") as following:
        assert following.codebook.fingerprint == other.fingerprint
        assert following.search(photos[7], k=1)[0].photo == str(photos[7])
    assert stored.search(photos[7], k=1)[0].photo == str(photos[7])

    stored.add(photos[9])  # between migration and switch
    stored.remove(photos[0])
    assert switch(root).photos == 9
    with opening(root) as now:
        assert now.codebook.fingerprint == other.fingerprint and now.info().previous_codebook == stored.codebook.name
        assert {match.photo for match in now.search(photos[9], k=20)} == set(map(str, photos[1:]))
        again = now.activate(photos[1:5], tmp_path / "out", recipe=RECIPES[1])
        assert "failed" not in {each.state for each in again}
        assert now.check() == []
    delete_previous(root)
    assert not (location(root) / "codebook").exists()
    with opening(root) as now:
        assert now.info().previous_codebook is None and now.info().photos == 9


def test_migrating_twice_changes_nothing(stored: Collection, tmp_path: Path) -> None:
    photos, root = tiny_photos(tmp_path / "photos", 4), stored.root
    stored.activate(photos, tmp_path / "out", recipe=RECIPES[1])
    first, second = (migrate(root, tiny_codebook(OTHER)) for _ in range(2))
    assert first == second
    with pytest.raises(CollectionError, match=r"is already being migrated to .*; finish that migration"):
        migrate(root, tiny_codebook("IVF2,PQ12x8"))
    with pytest.raises(CollectionError, match="already"):
        migrate(root, tiny_codebook(SPEC))


def test_remove_applies_to_every_generation(stored: Collection, tmp_path: Path) -> None:
    photos, root = tiny_photos(tmp_path / "photos", 4), stored.root
    stored.add(photos)
    migrate(root, tiny_codebook(OTHER))
    stored.remove(photos[0])
    with opening(root, generation="next") as following:
        assert following.info().photos == 3
    switch(root)
    with pytest.raises(CollectionError, match="is not the current one and cannot be changed; open it again"):
        stored.remove(photos[1])
    with opening(root) as now:
        now.remove(photos[1])
        with opening(root, generation="previous") as before:
            assert {match.photo for match in before.search(photos[1], k=9)} == set(map(str, photos[2:]))


def test_photos_added_until_the_switch_are_migrated(stored: Collection, tmp_path: Path) -> None:
    photos, root = tiny_photos(tmp_path / "photos", 4), stored.root
    stored.add(photos[:2])
    migrate(root, tiny_codebook(OTHER))
    with opening(root) as other:
        other.add(photos[2:])
    assert switch(root).photos == 4


def test_switch_needs_a_next_generation(stored: Collection) -> None:
    root = stored.root
    with pytest.raises(CollectionError, match="has no next generation"):
        switch(root)
    with pytest.raises(CollectionError, match="has no previous generation"):
        delete_previous(root)
