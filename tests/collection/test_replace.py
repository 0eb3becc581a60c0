"""Replace photos at the same paths; a photo whose file was only renamed is never lost."""

import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from tests.collection.tiny import RECIPES, tiny_codebook, tiny_extractor, tiny_photos

from homing.collection import Collection


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with a collection of four photos."""
    tiny_photos(tmp_path / "photos", 8)
    for path in (tmp_path / "photos").glob("*.jpg"):
        path.rename(tmp_path / path.name)
    with Collection.create(tmp_path / "c.homing", codebook=tiny_codebook(), extractor=tiny_extractor()) as collection:
        collection.add(tmp_path / "photos")
    return tmp_path


def opened(workspace: Path) -> Collection:
    return Collection.open(workspace / "c.homing", extractor=tiny_extractor())


def test_renaming_each_file_to_the_previous_name(workspace: Path) -> None:
    names = sorted((workspace / "photos").iterdir())
    kept = [path.read_bytes() for path in names[1:]]
    for earlier, later in pairwise(names):
        shutil.move(later, earlier)
    shutil.copy(workspace / "0001.jpg", names[-1])
    with opened(workspace) as collection:
        states = [outcome.state for outcome in collection.add(workspace / "photos", replace=True)]
        assert states == ["known", "known", "known", "added"]
        assert [outcome.state for outcome in collection.add(workspace / "photos")] == ["known"] * 4
    assert [path.read_bytes() for path in names[:-1]] == kept


def test_renaming_each_file_to_the_next_name(workspace: Path) -> None:
    names = sorted((workspace / "photos").iterdir())
    for earlier, later in reversed(list(pairwise(names))):
        shutil.move(earlier, later)
    shutil.copy(workspace / "0001.jpg", names[0])
    with opened(workspace) as collection:
        ids = [collection.search(path, k=1)[0].id for path in names[1:]]
        collection.add(workspace / "photos", replace=True)
        assert [outcome.state for outcome in collection.add(workspace / "photos")] == ["known"] * 4
        assert [collection.search(path, k=1)[0].id for path in names[1:]] == ids
        for _ in range(4):  # each run updates sources, which frees paths for the next run
            collection.add(workspace / "photos", replace=True)
        assert [collection.search(path, k=1)[0].photo for path in names] == [str(path) for path in names]
        assert collection.info().photos == 4


@pytest.mark.parametrize("replace", [False, True])
def test_each_photo_fails_if_the_catalog_cannot_be_written(workspace: Path, replace: bool) -> None:
    (workspace / "photos" / "0000.png").rename(workspace / "photos" / "moved.png")
    with opened(workspace) as collection:
        collection.storage._database.execute(
            "CREATE TRIGGER full BEFORE UPDATE ON photos BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        )
        outcomes = collection.add(workspace / "photos", replace=replace)
        assert [outcome.state for outcome in outcomes] == ["known"] * 3 + ["failed"]
        assert outcomes[-1].reason == "the catalog cannot be written: the disk is full"
        outcomes = collection.activate(workspace / "photos", workspace / "out", recipe=RECIPES[0])
        (failed,) = (outcome for outcome in outcomes if outcome.state == "failed")
        assert failed.reason == "the catalog cannot be written: the disk is full"
