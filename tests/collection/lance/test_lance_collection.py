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


def test_search_results_equal_those_of_sqlite(lake: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 12)
    with Collection.create(tmp_path / "c.homing", codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as folder:
        for collection in (lake, folder):
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
                in_lance, in_sqlite = lake.search(photo, k=5, **options), folder.search(photo, k=5, **options)
                assert [(each.photo, each.state, each.compared) for each in in_lance] == [
                    (each.photo, each.state, each.compared) for each in in_sqlite
                ]
                np.testing.assert_allclose(
                    [(each.distance, each.false_match_probability) for each in in_lance],
                    [(each.distance, each.false_match_probability) for each in in_sqlite],
                    atol=2e-3,  # SQLite stores descriptors as fp16
                )
        one, two = lake.info(), folder.info()
        assert (one.photos, one.activated, one.unchanged) == (two.photos, two.activated, two.unchanged)
    assert lake.check() == []


def test_activating_does_not_change_the_index(pond: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 3)
    pond.add(photos)
    before = pond.folder.catalog.revision
    assert "activated" in {each.state for each in pond.activate(photos, tmp_path / "out", recipe=RECIPES[1])}
    assert pond.folder.catalog.revision == before


def test_remove_by_id_path_and_folder(lake: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 4) + tiny_photos(tmp_path / "photos" / "deep", 3, seed=1)
    lake.add(tmp_path / "photos")
    (first,) = lake.select(photos[0]).ids
    lake.activate(photos[0], tmp_path / "out", recipe=RECIPES[1])
    (outcome,) = lake.remove(first)
    assert (outcome.state, outcome.released) == ("removed", str(tmp_path / "out" / photos[0].name))
    assert [each.state for each in lake.remove(photos[1])] == ["removed"]
    assert len(lake.remove(tmp_path / "photos" / "deep")) == 3
    assert [each.state for each in lake.remove([first, "nowhere.jpg"])] == ["failed", "failed"]
    assert lake.info().photos == 2
    assert all(match.photo in map(str, photos[2:4]) for match in lake.search(photos[0], k=10))
    with pytest.raises(NotFoundError):
        lake.folder.catalog.source_and_state(first)
    assert lake.add(photos[0])[0].state == "added", "a removed photo can be added again"
    assert lake.select(photos[0]).ids != [first], "under another id"


def test_moved_and_changed_files(pond: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 3)
    pond.add(photos)
    photos[0].rename(tmp_path / "photos" / "it's there.png")
    (moved,) = pond.add(tmp_path / "photos" / "it's there.png")
    assert (moved.state, moved.moved_from) == ("moved", str(photos[0]))
    shutil.copy(tiny_photos(tmp_path / "others", 2, seed=7)[1], photos[1])
    assert [each.state for each in pond.add(photos[1], replace=True)] == ["replaced"]
    assert pond.info().photos == 3
    assert pond.search(photos[1], k=1)[0].photo == str(photos[1])
    assert pond.search(tmp_path / "photos" / "it's there.png", k=1)[0].photo.endswith("it's there.png")


def test_passive_photos_are_activated_later(pond: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 3)
    pond.add(photos)
    pond.activate(photos[0], tmp_path / "out", recipe=RECIPES[0])
    done = pond.activate_passive(tmp_path / "out", recipe=RECIPES[0])
    assert sorted(str(each.photo) for each in done) == sorted(map(str, photos[1:]))
    assert pond.info().passive == 0 and pond.activate_passive(tmp_path / "out", recipe=RECIPES[0]) == []


def test_search_an_earlier_version(lake: Collection, opening, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 4)
    lake.add(photos[:2])
    before = lake.info().version
    lake.add(photos[2:])
    lake.remove(photos[0])
    assert isinstance(lake, LanceCollection)
    assert {each.number: each.photos for each in lake.versions()}[before] == 2
    with opening(lake.folder.root, version=before) as earlier:
        assert {match.photo for match in earlier.search(photos[3], k=10)} == {str(photos[0]), str(photos[1])}
        with pytest.raises(CollectionError, match="is read-only; open the latest"):
            earlier.remove(photos[1])
    with pytest.raises(CollectionError, match=r"version 99 of .* does not exist, or was deleted"):
        opening(lake.folder.root, version=99)
    for number in (0, -1, 1 << 64):
        with pytest.raises(CollectionError, match=f"has no version {number}: versions are counted from 1"):
            opening(lake.folder.root, version=number)
    assert lake.info().photos == 3


@pytest.mark.slow
def test_compacting_does_not_change_results(lake: Collection, opening, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 12)
    for first in range(0, 12, 3):
        lake.add(photos[first : first + 3])
    lake.activate(photos[:3], tmp_path / "out", recipe=RECIPES[0])
    lake.remove(photos[5:8])
    with opening(lake.folder.root) as reader:
        before = [reader.search(photo, k=20, probes=8) for photo in photos[:8]]
        assert isinstance(lake, LanceCollection)
        lake.compact()
        assert (
            unindexed_rows(lake.folder.catalog.references.dataset) == 0
            and len(lake.folder.catalog.references.dataset.get_fragments()) == 1
        )
        after = [reader.search(photo, k=20, probes=8) for photo in photos[:8]]
    for one, other in zip(before, after, strict=True):
        assert {(each.id, each.state, each.photo) for each in one} == {
            (each.id, each.state, each.photo) for each in other
        }
        np.testing.assert_allclose([each.distance for each in one], [each.distance for each in other], atol=2e-6)
    lake.add(tiny_photos(tmp_path / "more", 2, seed=3))
    lake.compact()
    assert unindexed_rows(lake.folder.catalog.references.dataset) == 0 and lake.check() == []


def test_readers_see_additions_of_other_processes(lake: Collection, opening, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 2)
    with opening(lake.folder.root) as reader:
        assert reader.search(photos[0]).matches == ()
        lake.add(photos[0])
        assert reader.search(photos[0], k=1)[0].distance < 0.01
        lake.remove(photos[0])
        assert reader.search(photos[0]).matches == ()


def test_remove_ignores_impossible_ids(pond: Collection, tmp_path: Path) -> None:
    pond.add(tiny_photos(tmp_path / "photos", 1))
    assert [each.state for each in pond.remove([0, -3, 10**30, 1])] == ["removed", "failed", "failed", "failed"]


def test_the_catalog_has_the_interface_of_the_sqlite_catalog() -> None:
    sqlite_only = {
        *("codes", "codes_revision", "set_code", "removed_since"),
        *("get_metadata", "set_metadata", "create"),
    }
    names = {name for name in dir(Catalog) if not name.startswith("_")}
    assert names - sqlite_only <= set(dir(LanceCatalog))


@pytest.mark.parametrize("inside", ["", "/out", "/references.lance"])
def test_output_inside_the_collection_is_rejected(lake: Collection, inside: str, tmp_path: Path) -> None:
    with pytest.raises(HomingError, match="lies inside the collection"):
        lake.activate(tiny_photos(tmp_path / "photos", 1), f"{lake.folder.root}{inside}")
