"""Removed references no longer appear in any search result."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import descriptors, train

from homing.collection import Collection
from homing.collection.references import NewPhotos
from homing.extractors import Extractor


@pytest.fixture
def three(photos: Path, tmp_path: Path, extractor: Extractor) -> Iterator[Collection]:
    """A collection of two photos in a folder, and one in its subfolder."""
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for name in ("flower.jpg", "camera.png"):
        shutil.copy(photos / name, tmp_path / "in" / name)
    shutil.copy(photos / "rocket.jpg", tmp_path / "in" / "deep" / "rocket.jpg")
    with Collection.create(tmp_path / "three.homing", extractor=extractor) as collection:
        collection.add(tmp_path / "in")
        yield collection


def found(collection: Collection, photo: Path) -> set[str]:
    return {Path(match.photo).name for match in collection.search(photo)}


def test_remove_by_id(three: Collection, photos: Path) -> None:
    number = three.search(photos / "flower.jpg", k=1)[0].id
    (outcome,) = three.remove(number)
    assert (outcome.state, Path(outcome.photo).name) == ("removed", "flower.jpg")
    assert found(three, photos / "flower.jpg") == {"camera.png", "rocket.jpg"}


def test_remove_by_path_with_and_without_the_file(three: Collection, photos: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in" / "camera.png").unlink()
    outcomes = three.remove([Path("in/camera.png"), str(tmp_path / "in" / "deep" / ".." / "flower.jpg")])
    assert [outcome.state for outcome in outcomes] == ["removed", "removed"]
    assert found(three, photos / "camera.png") == {"rocket.jpg"}


def test_remove_by_folder_but_not_by_name_prefix(three: Collection, photos: Path, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "in", tmp_path / "in.more")
    shutil.copy(photos / "chelsea.png", tmp_path / "in.more")
    three.add(tmp_path / "in.more")
    assert len(three.remove(tmp_path / "in" / "deep")) == 1
    (tmp_path / "link").symlink_to(tmp_path / "in")
    assert {outcome.state for outcome in three.remove(tmp_path / "link")} == {"removed"}
    assert found(three, photos / "chelsea.png") == {"chelsea.png"}


def test_unknown_selectors_fail_and_the_others_are_removed(three: Collection, tmp_path: Path) -> None:
    what = [tmp_path / "in" / "flower.jpg", 99, "nowhere.jpg", 10**30, "not-utf8-\udcff"]
    outcomes = three.remove(what)
    assert [outcome.state for outcome in outcomes] == ["removed", *["failed"] * 4]
    assert outcomes[1].reason == "no reference has this id"
    assert outcomes[2].photo == "nowhere.jpg" and outcomes[2].reason.startswith("no reference was added from this path")
    again = three.remove([tmp_path / "in" / "flower.jpg", tmp_path / "in" / "camera.png"])
    assert [outcome.state for outcome in again] == ["removed", "failed"]
    assert three.info().photos == 1


def test_an_empty_name_selects_nothing(three: Collection, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path / "in")
    (outcome,) = three.remove("")
    assert (outcome.state, outcome.reason) == ("failed", "an empty name selects no reference")
    assert three.info().photos == 3
    assert len(three.remove(".")) == 3


def test_only_released_files_remain(collection: Collection, photos: Path, tmp_path: Path) -> None:
    released = tmp_path / "out" / "flower.jpg"
    collection.activate(photos / "flower.jpg", tmp_path / "out", recipe="paper-fast")
    (outcome,) = collection.remove(photos / "flower.jpg")
    assert outcome.released == str(released)
    assert released.is_file()
    for table in ("photos", "descriptors", "releases"):
        assert collection.storage._fetch_all(f"SELECT * FROM {table}") == []
    assert collection.search(released, k=1)[0].state == "distractor"
    assert [each.state for each in collection.add(photos / "flower.jpg")] == ["added"]


def test_removed_references_are_not_found_in_other_open_collections(three: Collection, photos: Path, extractor) -> None:
    path = three.path
    with Collection.open(path, extractor=extractor) as other:
        assert "flower.jpg" in found(other, photos / "flower.jpg")
        before = other.index
        three.remove(1)
        three.add(photos / "chelsea.png")
        assert found(other, photos / "flower.jpg") == found(three, photos / "flower.jpg")
        assert "chelsea.png" in found(other, photos / "flower.jpg")
        assert other.index is before, "the index was rebuilt instead of updated"
    with Collection.open(path, extractor=extractor) as later:
        assert found(later, photos / "flower.jpg") == found(three, photos / "flower.jpg")


def test_remove_is_one_transaction(three: Collection, tmp_path: Path) -> None:
    three.storage._database.execute(
        "CREATE TRIGGER keep BEFORE DELETE ON descriptors WHEN old.photo = 3 BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    with pytest.raises(Exception, match="cannot be written"):
        three.remove(tmp_path / "in")
    assert three.info().photos == len(three.storage.descriptors(np.arange(5))) == 3


def test_ids_are_never_reused(three: Collection, photos: Path) -> None:
    last = max(match.id for match in three.search(photos / "flower.jpg"))
    three.remove(last)
    three.add(photos)
    assert len({match.id for match in three.search(photos / "flower.jpg")} & {last, last + 1, last + 2}) == 2
    assert list(three.storage.hashes_of([last])) == []


@pytest.mark.parametrize(
    "spec", ["IVF4,PQ8x4", "PQ8x4", "SQ8", "IVF4,PQ8x4fs", "PQ8x4fs", "HNSW8,PQ8x4", "IVF4,RaBitQ"]
)
def test_removal_in_every_index_family(spec: str, tmp_path: Path) -> None:
    book, rows = train(spec), descriptors(300)
    codes = book.encode(rows)

    def photos(positions: range) -> NewPhotos:
        return NewPhotos(
            [f"{n}" for n in positions], [f"/{n}" for n in positions], codes[positions], rows[positions].numpy()
        )

    with (
        Collection.create(tmp_path / "c", codebook=book) as living,
        Collection.create(tmp_path / "d", codebook=book) as fresh,
    ):
        for start in range(0, 300, 50):
            living.record(photos(range(start, start + 50)))
            living.search_descriptors(rows[:2])
            living.remove([f"/{position}" for position in range(start, start + 50) if position % 3])
        fresh.record(photos(range(0, 300, 3)))
        results = [
            [
                [(match.photo, round(match.distance, 4)) for match in row]
                for row in each.search_descriptors(rows[:50], k=5)
            ]
            for each in (living, fresh)
        ]
    if not spec.startswith("HNSW"):  # a graph depends on the order in which it grew
        assert results[0] == results[1]
    assert all(int(photo[1:]) % 3 == 0 for row in results[0] for photo, _ in row)
    with Collection.open(tmp_path / "c") as again:
        assert len(again.index) == 100
