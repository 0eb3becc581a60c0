"""A collection in Lance behaves like one in SQLite, in a folder and in a bucket."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.collection.tiny import RECIPES, tiny_photos

from homing.collection import Collection
from homing.errors import CollectionError, HomingError
from homing.indexes.lance import MAX_CODES_IN_MEMORY, unindexed_rows


@pytest.fixture(autouse=True, params=[0, MAX_CODES_IN_MEMORY], ids=["in the dataset", "in memory"])
def _search_mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test with the search in memory, as for few references, and in the dataset, as for many."""
    monkeypatch.setattr("homing.indexes.lance.MAX_CODES_IN_MEMORY", request.param)


def test_search_an_earlier_version(lance_collection: Collection, opening, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 4)
    lance_collection.add(photos[:2])
    before = lance_collection.info().version
    lance_collection.add(photos[2:])
    lance_collection.remove(photos[0])
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
        lance_collection.compact()
        assert (
            unindexed_rows(lance_collection.storage.table.dataset) == 0
            and len(lance_collection.storage.table.dataset.get_fragments()) == 1
        )
        after = [reader.search(photo, k=20, probes=8) for photo in photos[:8]]
    for one, other in zip(before, after, strict=True):
        assert {(each.id, each.state, each.photo) for each in one} == {
            (each.id, each.state, each.photo) for each in other
        }
        np.testing.assert_allclose([each.distance for each in one], [each.distance for each in other], atol=2e-6)
    lance_collection.add(tiny_photos(tmp_path / "more", 2, seed=3))
    lance_collection.compact()
    assert unindexed_rows(lance_collection.storage.table.dataset) == 0 and lance_collection.check() == []


@pytest.mark.parametrize("inside", ["", "/out", "/references.lance"])
def test_output_inside_the_collection_is_rejected(lance_collection: Collection, inside: str, tmp_path: Path) -> None:
    with pytest.raises(HomingError, match="lies inside the collection"):
        lance_collection.activate(tiny_photos(tmp_path / "photos", 1), f"{lance_collection.root}{inside}")
