"""Migrate a collection in Lance to another codebook. Both generations can be searched until the switch."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.collection.lance.conftest import LANCE
from tests.collection.tiny import RECIPES, tiny_codebook, tiny_photos

from homing._io.paths import location
from homing.collection import Collection, delete_previous, migrate, switch
from homing.errors import CollectionError

OTHER = "IVF4,PQ12x8"


@pytest.mark.slow
def test_both_generations_can_be_searched_until_the_switch(
    lance_collection: Collection, opening, tmp_path: Path
) -> None:
    photos, root = tiny_photos(tmp_path / "photos", 10), str(lance_collection.root)
    done = lance_collection.activate(photos[:5], tmp_path / "out", recipe=RECIPES[1])
    lance_collection.add(photos[5:9])
    other, counted = tiny_codebook(OTHER), []
    first = migrate(root, other, advance=lambda: counted.append(1))
    assert (first.photos, len(counted), first.missing) == (9, 9, [])
    activated = sum(each.state == "activated" for each in done)
    assert activated > 0 and len(first.gain_kept) + len(first.gain_lost) == activated and first.gain_unknown == []
    assert lance_collection.info().next_codebook == other.name
    with opening(root, generation="next") as following:
        assert following.codebook.fingerprint == other.fingerprint
        assert following.search(photos[7], k=1)[0].photo == str(photos[7])
    assert lance_collection.search(photos[7], k=1)[0].photo == str(photos[7])

    lance_collection.add(photos[9])  # between migration and switch
    lance_collection.remove(photos[0])
    assert switch(root).photos == 9
    with opening(root) as now:
        assert (
            now.codebook.fingerprint == other.fingerprint
            and now.info().previous_codebook == lance_collection.codebook.name
        )
        assert {match.photo for match in now.search(photos[9], k=20)} == set(map(str, photos[1:]))
        again = now.activate(photos[1:5], tmp_path / "out", recipe=RECIPES[1])
        assert "failed" not in {each.state for each in again}
        assert now.check() == []
    delete_previous(root)
    assert not (location(root) / "references.lance").exists()
    with opening(root) as now:
        assert now.info().previous_codebook is None and now.info().photos == 9


def test_migrating_twice_changes_nothing(lance_collection: Collection, tmp_path: Path) -> None:
    photos, root = tiny_photos(tmp_path / "photos", 4), str(lance_collection.root)
    lance_collection.activate(photos, tmp_path / "out", recipe=RECIPES[1])
    first, second = (migrate(root, tiny_codebook(OTHER)) for _ in range(2))
    assert first == second
    with pytest.raises(CollectionError, match=r"is already being migrated to .*; finish that migration"):
        migrate(root, tiny_codebook("IVF2,PQ12x8"))
    with pytest.raises(CollectionError, match="already"):
        migrate(root, tiny_codebook(LANCE))


def test_remove_applies_to_every_generation(lance_collection: Collection, opening, tmp_path: Path) -> None:
    photos, root = tiny_photos(tmp_path / "photos", 4), str(lance_collection.root)
    lance_collection.add(photos)
    migrate(root, tiny_codebook(OTHER))
    lance_collection.remove(photos[0])
    with opening(root, generation="next") as following:
        assert following.info().photos == 3
    switch(root)
    with pytest.raises(CollectionError, match="is not the current one and cannot be changed; open it again"):
        lance_collection.remove(photos[1])
    with opening(root) as now:
        now.remove(photos[1])
        with opening(root, generation="previous") as before:
            assert {match.photo for match in before.search(photos[1], k=9)} == set(map(str, photos[2:]))


def test_photos_added_until_the_switch_are_migrated(lance_collection: Collection, opening, tmp_path: Path) -> None:
    photos, root = tiny_photos(tmp_path / "photos", 4), str(lance_collection.root)
    lance_collection.add(photos[:2])
    migrate(root, tiny_codebook(OTHER))
    with opening(root) as other:
        other.add(photos[2:])
    assert switch(root).photos == 4


def test_switch_needs_a_next_generation(lance_collection: Collection) -> None:
    root = str(lance_collection.root)
    with pytest.raises(CollectionError, match="has no next generation"):
        switch(root)
    with pytest.raises(CollectionError, match="has no previous generation"):
        delete_previous(root)
