"""A collection in Lance behaves like one in SQLite, in a folder and in a bucket."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.collection.lance.conftest import LANCE
from tests.collection.tiny import RECIPES, tiny_codebook, tiny_extractor, tiny_photos

from homing.collection import Collection
from homing.collection.catalog import Catalog
from homing.collection.lance.catalog import LanceCatalog
from homing.collection.lance.collection import LanceCollection
from homing.errors import CollectionError, HomingError, NotFoundError
from homing.indexes.lance import MAX_CODES_IN_MEMORY, unindexed_rows


@pytest.fixture(autouse=True, params=[0, MAX_CODES_IN_MEMORY], ids=["in the dataset", "in memory"])
def _search_mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test with the search in memory, as for few references, and in the dataset, as for many."""
    monkeypatch.setattr("homing.indexes.lance.MAX_CODES_IN_MEMORY", request.param)


def test_search_results_equal_those_of_sqlite(lance_collection: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 12)
    with Collection.create(tmp_path / "c.homing", codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as folder:
        for collection in (lance_collection, folder):
            assert [each.state for each in collection.add(tmp_path / "photos")] == ["added"] * 12
            assert [each.state for each in collection.add(tmp_path / "photos")] == ["known"] * 12
            out = tmp_path / f"out-{type(collection).__name__}"
            done = collection.activate(photos[:4], out, recipe=RECIPES[0])
            assert {each.state for each in done} <= {"activated", "unchanged"}
            assert [each.state for each in collection.activate(photos[:4], out, recipe=RECIPES[0])] == [
                each.state for each in done
            ]
        for options in ({}, {"probes": 1}, {"probes": 3, "rerank": 100}, {"probe_radius": 0.2}, {"variants": True}):
            for photo in photos[:6]:
                in_lance, in_sqlite = (
                    lance_collection.search(photo, k=5, **options),
                    folder.search(photo, k=5, **options),
                )
                assert [(each.photo, each.state, each.compared) for each in in_lance] == [
                    (each.photo, each.state, each.compared) for each in in_sqlite
                ]
                np.testing.assert_allclose(
                    [(each.distance, each.false_match_probability) for each in in_lance],
                    [(each.distance, each.false_match_probability) for each in in_sqlite],
                    atol=2e-3,  # SQLite stores descriptors as fp16
                )
        one, two = lance_collection.info(), folder.info()
        assert (one.photos, one.activated, one.unchanged) == (two.photos, two.activated, two.unchanged)
    assert lance_collection.check() == []


def test_activating_does_not_change_the_index(local_collection: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 3)
    local_collection.add(photos)
    before = local_collection.storage.revision
    assert "activated" in {
        each.state for each in local_collection.activate(photos, tmp_path / "out", recipe=RECIPES[1])
    }
    assert local_collection.storage.revision == before


def test_remove_by_id_path_and_folder(lance_collection: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 4) + tiny_photos(tmp_path / "photos" / "deep", 3, seed=1)
    lance_collection.add(tmp_path / "photos")
    (first,) = lance_collection.select(photos[0]).ids
    lance_collection.activate(photos[0], tmp_path / "out", recipe=RECIPES[1])
    (outcome,) = lance_collection.remove(first)
    assert (outcome.state, outcome.released) == ("removed", str(tmp_path / "out" / photos[0].name))
    assert [each.state for each in lance_collection.remove(photos[1])] == ["removed"]
    assert len(lance_collection.remove(tmp_path / "photos" / "deep")) == 3
    assert [each.state for each in lance_collection.remove([first, "nowhere.jpg"])] == ["failed", "failed"]
    assert lance_collection.info().photos == 2
    assert all(match.photo in map(str, photos[2:4]) for match in lance_collection.search(photos[0], k=10))
    with pytest.raises(NotFoundError):
        lance_collection.storage.source_and_state(first)
    assert lance_collection.add(photos[0])[0].state == "added", "a removed photo can be added again"
    assert lance_collection.select(photos[0]).ids != [first], "under another id"


def test_moved_and_changed_files(local_collection: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 3)
    local_collection.add(photos)
    photos[0].rename(tmp_path / "photos" / "it's there.png")
    (moved,) = local_collection.add(tmp_path / "photos" / "it's there.png")
    assert (moved.state, moved.moved_from) == ("moved", str(photos[0]))
    shutil.copy(tiny_photos(tmp_path / "others", 2, seed=7)[1], photos[1])
    assert [each.state for each in local_collection.add(photos[1], replace=True)] == ["replaced"]
    assert local_collection.info().photos == 3
    assert local_collection.search(photos[1], k=1)[0].photo == str(photos[1])
    assert local_collection.search(tmp_path / "photos" / "it's there.png", k=1)[0].photo.endswith("it's there.png")


def test_passive_photos_are_activated_later(local_collection: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 3)
    local_collection.add(photos)
    local_collection.activate(photos[0], tmp_path / "out", recipe=RECIPES[0])
    done = local_collection.activate_passive(tmp_path / "out", recipe=RECIPES[0])
    assert sorted(str(each.photo) for each in done) == sorted(map(str, photos[1:]))
    assert (
        local_collection.info().passive == 0
        and local_collection.activate_passive(tmp_path / "out", recipe=RECIPES[0]) == []
    )


def test_search_an_earlier_version(lance_collection: Collection, opening, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 4)
    lance_collection.add(photos[:2])
    before = lance_collection.info().version
    lance_collection.add(photos[2:])
    lance_collection.remove(photos[0])
    assert isinstance(lance_collection, LanceCollection)
    assert {each.number: each.photos for each in lance_collection.versions()}[before] == 2
    with opening(lance_collection.root, version=before) as earlier:
        assert {match.photo for match in earlier.search(photos[3], k=10)} == {str(photos[0]), str(photos[1])}
        with pytest.raises(CollectionError, match="is read-only; open the latest"):
            earlier.remove(photos[1])
    with pytest.raises(CollectionError, match=r"version 99 of .* does not exist, or was deleted"):
        opening(lance_collection.root, version=99)
    for number in (0, -1, 1 << 64):
        with pytest.raises(CollectionError, match=f"has no version {number}: versions are counted from 1"):
            opening(lance_collection.root, version=number)
    assert lance_collection.info().photos == 3


@pytest.mark.slow
def test_compacting_does_not_change_results(lance_collection: Collection, opening, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 12)
    for first in range(0, 12, 3):
        lance_collection.add(photos[first : first + 3])
    lance_collection.activate(photos[:3], tmp_path / "out", recipe=RECIPES[0])
    lance_collection.remove(photos[5:8])
    with opening(lance_collection.root) as reader:
        before = [reader.search(photo, k=20, probes=8) for photo in photos[:8]]
        assert isinstance(lance_collection, LanceCollection)
        lance_collection.compact()
        assert (
            unindexed_rows(lance_collection.storage.references.dataset) == 0
            and len(lance_collection.storage.references.dataset.get_fragments()) == 1
        )
        after = [reader.search(photo, k=20, probes=8) for photo in photos[:8]]
    for one, other in zip(before, after, strict=True):
        assert {(each.id, each.state, each.photo) for each in one} == {
            (each.id, each.state, each.photo) for each in other
        }
        np.testing.assert_allclose([each.distance for each in one], [each.distance for each in other], atol=2e-6)
    lance_collection.add(tiny_photos(tmp_path / "more", 2, seed=3))
    lance_collection.compact()
    assert unindexed_rows(lance_collection.storage.references.dataset) == 0 and lance_collection.check() == []


def test_readers_see_additions_of_other_processes(lance_collection: Collection, opening, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 2)
    with opening(lance_collection.root) as reader:
        assert reader.search(photos[0]).matches == ()
        lance_collection.add(photos[0])
        assert reader.search(photos[0], k=1)[0].distance < 0.01
        lance_collection.remove(photos[0])
        assert reader.search(photos[0]).matches == ()


def test_remove_ignores_impossible_ids(local_collection: Collection, tmp_path: Path) -> None:
    local_collection.add(tiny_photos(tmp_path / "photos", 1))
    assert [each.state for each in local_collection.remove([0, -3, 10**30, 1])] == [
        "removed",
        "failed",
        "failed",
        "failed",
    ]


def test_the_catalog_has_the_interface_of_the_sqlite_catalog() -> None:
    sqlite_only = {
        *("codes", "codes_revision", "set_code", "removed_since"),
        *("get_metadata", "set_metadata", "create"),
    }
    names = {name for name in dir(Catalog) if not name.startswith("_")}
    assert names - sqlite_only <= set(dir(LanceCatalog))


@pytest.mark.parametrize("inside", ["", "/out", "/references.lance"])
def test_output_inside_the_collection_is_rejected(lance_collection: Collection, inside: str, tmp_path: Path) -> None:
    with pytest.raises(HomingError, match="lies inside the collection"):
        lance_collection.activate(tiny_photos(tmp_path / "photos", 1), f"{lance_collection.root}{inside}")
