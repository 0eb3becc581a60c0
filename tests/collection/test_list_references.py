"""List the references of a collection: pages, filters and fields."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from tests.collection.lance.conftest import LANCE
from tests.collection.tiny import RECIPES, SPEC, tiny_codebook, tiny_extractor, tiny_photos

from homing.collection import Collection
from homing.errors import HomingError


@pytest.fixture(params=["c", "c.lance"])
def opened(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Collection]:
    """An empty collection in SQLite or Lance."""
    codebook = tiny_codebook(LANCE if request.param.endswith(".lance") else SPEC)
    with Collection.create(tmp_path / request.param, codebook=codebook, extractor=tiny_extractor()) as created:
        yield created


@pytest.fixture
def filled(opened: Collection, tmp_path: Path) -> tuple[Collection, list[Path]]:
    """A collection of twelve photos, the first four released."""
    photos = tiny_photos(tmp_path / "photos", 12)
    opened.add(photos)
    opened.activate(photos[:4], tmp_path / "out", recipe=RECIPES[1])
    return opened, photos


def test_an_empty_collection_has_no_references(opened: Collection) -> None:
    assert list(opened.references()) == []


def test_fields_of_a_reference(filled: tuple[Collection, list[Path]], tmp_path: Path) -> None:
    collection, photos = filled
    listed = list(collection.references())
    assert [each.photo for each in listed] == [str(photo) for photo in photos]
    assert [each.id for each in listed] == sorted(each.id for each in listed)
    catalog, now = collection.storage, datetime.now(timezone.utc)
    for position, each in enumerate(listed):
        assert catalog.find(each.sha256) == each.id
        assert catalog.source_and_state(each.id) == (each.photo, each.state)
        assert now - timedelta(minutes=9) < each.added <= now + timedelta(seconds=2)
        if position < 4:
            (release,) = each.releases
            assert release.path == str(tmp_path / "out" / photos[position].name)
            assert release.state == each.state
            assert release.psnr == catalog.last_release(each.id).psnr
            assert each.added - timedelta(seconds=2) <= release.time <= now + timedelta(seconds=2)
        else:
            assert (each.state, each.releases) == ("passive", ())


def test_releases_are_listed_latest_first(filled: tuple[Collection, list[Path]], tmp_path: Path) -> None:
    collection, photos = filled
    collection.activate(photos[0], tmp_path / "later", recipe=RECIPES[1])
    first = next(collection.references())
    assert [Path(release.path).parent.name for release in first.releases] == ["later", "out"]


def test_pages_hold_each_reference_once(filled: tuple[Collection, list[Path]]) -> None:
    collection, _ = filled
    everything = list(collection.references())
    collection.remove(everything[5].id)
    del everything[5]
    for limit in (1, 5, 11, 50):
        pages, after = [], None
        while page := list(collection.references(after=after, limit=limit)):
            assert len(page) <= limit
            pages += page
            after = page[-1].id
        assert pages == everything
    assert list(collection.references(name_contains="odd\udcff")) == []
    assert list(collection.references(after=10**12)) == list(collection.references(after=10**30)) == []


def test_references_of_a_state(filled: tuple[Collection, list[Path]]) -> None:
    collection, _ = filled
    everything = list(collection.references())
    for state in ("passive", "activated", "unchanged"):
        wanted = [each for each in everything if each.state == state]
        assert list(collection.references(state=state)) == wanted
        assert list(collection.references(state=state, limit=2)) == wanted[:2]
    assert len(list(collection.references(state="passive"))) == 8


def test_references_by_a_part_of_their_file_name(opened: Collection, tmp_path: Path) -> None:
    created = tiny_photos(tmp_path / "photos", 4)
    names = ["Beach.PNG", unicodedata.normalize("NFD", "Épernay.jpg"), "50%_off'.png", "beach-2.jpg"]
    photos = [path.rename(path.with_name(name)) for path, name in zip(created, names, strict=True)]
    opened.add(photos)
    for text, wanted in [("beach", [0, 3]), ("éPERNAY", [1]), ("%_", [2]), ("'", [2]), ("photos", []), ("", range(4))]:
        found = [each.photo for each in opened.references(name_contains=text)]
        assert found == [str(photos[position]) for position in wanted], text
    assert [each.photo for each in opened.references(name_contains="BEACH", limit=1)] == [str(photos[0])]


def test_more_references_than_a_page(opened: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = tiny_photos(tmp_path / "photos", 9)
    opened.add(photos)
    for module in ("homing.collection.storage._sqlite_rows", "homing.collection.storage._lance_rows"):
        monkeypatch.setattr(f"{module}._PAGE", 4)
    assert [each.photo for each in opened.references()] == list(map(str, photos))
    assert [each.photo for each in opened.references(limit=6)] == list(map(str, photos[:6]))
    assert [each.photo for each in opened.references(limit=8)] == list(map(str, photos[:8]))


def test_references_are_listed_while_others_are_added(filled: tuple[Collection, list[Path]], tmp_path: Path) -> None:
    collection, _ = filled
    listing = collection.references()
    first = next(listing)
    collection.add(tiny_photos(tmp_path / "more", 2, seed=3))
    ids = [first.id, *(each.id for each in listing)]
    assert ids == sorted(set(ids)) and len(ids) >= 12


@pytest.mark.parametrize(
    ("options", "line"),
    [({"state": "activ"}, "unknown state 'activ'; did you mean 'activated'"), ({"limit": 0}, "at least 1, got 0")],
)
def test_wrong_options_are_rejected_at_once(opened: Collection, options: dict[str, object], line: str) -> None:
    with pytest.raises(HomingError, match=line):
        opened.references(**options)
