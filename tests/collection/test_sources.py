"""Photos that moved or changed since they were added, and passive photos activated from their sources."""

import shutil
from pathlib import Path

import pytest

from homing.collection import Collection
from homing.errors import HomingError
from homing.photo import find_photos


def states(outcomes: list) -> list[str]:
    return [outcome.state for outcome in outcomes]


@pytest.fixture
def folder(photos: Path, tmp_path: Path) -> Path:
    """A folder of photos to move and change, two of them in a subfolder."""
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for name in ("flower.jpg", "camera.png"):
        shutil.copy(photos / name, tmp_path / "in" / name)
    for name in ("rocket.jpg", "chelsea.png"):
        shutil.copy(photos / name, tmp_path / "in" / "deep" / name)
    return tmp_path / "in"


def test_a_moved_photo_is_known_at_its_new_path(collection: Collection, folder: Path, tmp_path: Path) -> None:
    collection.add(folder)
    revision = collection.storage.revision
    new = folder.rename(tmp_path / "new")
    outcomes = collection.add(new)
    assert states(outcomes) == ["moved"] * 4
    assert {outcome.moved_from for outcome in outcomes} == {
        str(folder / each.relative_to(new)) for each in new.rglob("*.*")
    }
    assert collection.search(new / "flower.jpg", k=1)[0].photo == str(new / "flower.jpg")
    assert states(collection.add(new)) == ["known"] * 4
    assert (collection.info().photos, collection.storage.revision) == (4, revision)


def test_a_copy_of_an_existing_photo_is_not_a_move(collection: Collection, folder: Path, tmp_path: Path) -> None:
    collection.add(folder)
    shutil.copytree(folder, tmp_path / "copies")
    assert states(collection.add(tmp_path / "copies")) == ["known"] * 4
    assert collection.search(folder / "flower.jpg", k=1)[0].photo == str(folder / "flower.jpg")


def test_one_of_two_copies_of_a_missing_photo_becomes_its_source(
    collection: Collection, folder: Path, tmp_path: Path
) -> None:
    collection.add(folder / "flower.jpg")
    shutil.copy(folder / "flower.jpg", tmp_path / "a.jpg")
    (folder / "flower.jpg").rename(tmp_path / "b.jpg")
    assert sorted(states(collection.add([tmp_path / "a.jpg", tmp_path / "b.jpg"]))) == ["known", "moved"]


def test_activating_a_moved_photo_reports_the_move(collection: Collection, folder: Path, tmp_path: Path) -> None:
    collection.add(folder / "flower.jpg")
    moved = (folder / "flower.jpg").rename(tmp_path / "moved.jpg")
    (outcome,) = collection.activate(moved, tmp_path / "out", recipe="paper-fast")
    assert (outcome.state, outcome.moved_from) == ("activated", str(folder / "flower.jpg"))
    assert collection.search(moved, k=1)[0].photo == str(moved)
    (outcome,) = collection.activate(moved, tmp_path / "out", recipe="paper-fast")
    assert outcome.moved_from is None


def test_replace_a_photo_at_the_same_path(collection: Collection, folder: Path, photos: Path) -> None:
    collection.add(folder / "camera.png")
    shutil.copy(photos / "chelsea.png", folder / "camera.png")
    assert states(collection.add(folder / "camera.png", replace=True)) == ["replaced"]
    assert collection.info().photos == 1
    nearest = collection.search(photos / "chelsea.png", k=1)[0]
    assert (nearest.photo, nearest.id) == (str(folder / "camera.png"), 2)
    assert collection.search(photos / "camera.png", k=1)[0].state == "distractor"
    assert states(collection.add(folder, replace=True)) == ["known", "known", "added", "added"]


def test_photos_are_replaced_only_with_replace(collection: Collection, folder: Path, photos: Path) -> None:
    collection.add(folder / "camera.png")
    shutil.copy(photos / "chelsea.png", folder / "camera.png")
    assert states(collection.add(folder / "camera.png")) == ["added"]
    assert collection.info().photos == 2
    assert states(collection.add(folder / "camera.png", replace=True)) == ["replaced"]
    assert collection.search(photos / "camera.png", k=1)[0].state == "distractor"


def test_swapped_files_lose_nothing(collection: Collection, folder: Path) -> None:
    one, two = folder / "deep" / "chelsea.png", folder / "camera.png"
    collection.add([one, two])
    one.rename(folder / "third")
    two.rename(one)
    (folder / "third").rename(two)
    assert states(collection.add([one, two], replace=True)) == ["known", "known"]
    assert collection.info().photos == 2


def test_replacing_is_one_transaction(collection: Collection, folder: Path, photos: Path) -> None:
    collection.add(folder / "camera.png")
    shutil.copy(photos / "chelsea.png", folder / "camera.png")
    collection.storage._database.execute(
        "CREATE TRIGGER full BEFORE INSERT ON descriptors BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
    )
    (outcome,) = collection.add(folder / "camera.png", replace=True)
    assert outcome.state == "failed"
    assert collection.search(photos / "camera.png", k=1)[0].photo == str(folder / "camera.png")


def test_passive_photos_are_activated_later(collection: Collection, folder: Path, tmp_path: Path) -> None:
    collection.add(folder)
    collection.activate(folder / "flower.jpg", tmp_path / "out", recipe="paper-fast")
    queries = sorted(folder.rglob("*.*"))
    before = [[match.distance for match in collection.search(path, k=20)] for path in queries]
    stored, revision = collection.index.to_bytes(), collection.storage.revision
    codes = collection.storage._fetch_all("SELECT id, sha256, code FROM photos")
    outcomes = collection.activate_passive(tmp_path / "out", recipe="paper-fast")
    assert {Path(outcome.released).relative_to(tmp_path / "out") for outcome in outcomes} == {
        Path("camera.png"), Path("deep/rocket.jpg"), Path("deep/chelsea.png")
    }  # fmt: skip
    assert states(outcomes) == ["activated"] * 3
    assert collection.info().passive == 0
    assert collection.index.to_bytes() == stored
    assert collection.storage.revision == revision
    assert collection.storage._fetch_all("SELECT id, sha256, code FROM photos") == codes
    assert [[match.distance for match in collection.search(path, k=20)] for path in queries] == before
    assert collection.activate_passive(tmp_path / "out", recipe="paper-fast") == []


def test_an_interrupted_job_gives_the_remaining_files_the_same_names(
    collection: Collection, folder: Path, tmp_path: Path
) -> None:
    collection.add(folder)
    collection.activate([folder / "flower.jpg", folder / "camera.png"], tmp_path / "out", recipe="paper-fast")
    outcomes = collection.activate_passive(tmp_path / "out", recipe="paper-fast")
    assert {Path(outcome.released).parent for outcome in outcomes} == {tmp_path / "out" / "deep"}


def test_missing_and_changed_passive_photos_fail(
    collection: Collection, folder: Path, photos: Path, tmp_path: Path
) -> None:
    collection.add(folder)
    (folder / "flower.jpg").unlink()
    shutil.copy(photos / "flower.jpg", folder / "camera.png")
    outcomes = {
        Path(each.photo).name: each for each in collection.activate_passive(tmp_path / "out", recipe="paper-fast")
    }
    assert "No such file" in outcomes["flower.jpg"].reason
    assert "the file has changed since it was added" in outcomes["camera.png"].reason
    assert outcomes["rocket.jpg"].state == outcomes["chelsea.png"].state == "activated"
    assert (collection.info().photos, collection.info().passive) == (4, 2)


def test_an_overwritten_passive_photo_fails(collection: Collection, folder: Path, photos: Path, tmp_path: Path) -> None:
    collection.add(folder / "camera.png")
    shutil.copy(photos / "chelsea.png", folder / "camera.png")
    collection.add(folder / "camera.png")
    reported = []
    outcomes = collection.activate_passive(tmp_path / "out", recipe="paper-fast", on_outcome=reported.append)
    assert states(outcomes) == ["activated", "failed"] == states(reported)
    assert "the file has changed since it was added; add it again with replace" in outcomes[1].reason
    assert collection.info().passive == 1


def test_sources_without_a_common_folder_are_rejected(collection: Collection, folder: Path, tmp_path: Path) -> None:
    collection.add(folder)
    collection.storage.update_source(1, collection.storage.source_and_state(1)[0], "elsewhere:/photo.jpg")
    with pytest.raises(HomingError, match="no common folder"):
        collection.activate_passive(tmp_path / "out")


def test_a_folder_that_was_listed_is_not_listed_again(collection: Collection, folder: Path, tmp_path: Path) -> None:
    found = find_photos([folder])
    shutil.copy(folder / "flower.jpg", folder / "later.jpg")
    assert states(collection.add(found)) == ["added"] * 4
    released = collection.activate(found, tmp_path / "out", recipe="paper-fast")
    assert sorted(str(Path(str(each.released)).relative_to(tmp_path / "out")) for each in released) == sorted(
        str(each.name) for each in found
    )
