"""A check finds damage; a repair fixes what it can, and says what the user must do about the rest."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.collection.tiny import RECIPES, tiny_codebook, tiny_extractor, tiny_photos

from homing.collection import Collection, Finding, check
from homing.errors import CollectionError

PHOTOS = 6


@pytest.fixture(scope="module")
def original_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a closed collection of six photos, two of them released."""
    folder = tmp_path_factory.mktemp("original_workspace")
    paths = tiny_photos(folder / "photos", PHOTOS)
    with Collection.create(folder / "c.homing", codebook=tiny_codebook(), extractor=tiny_extractor()) as collection:
        collection.add(paths)
        collection.activate(paths[:2], folder / "out", recipe=RECIPES[0])
        collection.search(paths[0])
    return folder


@pytest.fixture
def workspace(original_workspace: Path, tmp_path: Path) -> Path:
    """A copy to damage. The paths in its catalog are those of the copy."""
    shutil.copytree(original_workspace, tmp_path / "workspace")
    change(
        tmp_path / "workspace",
        f"UPDATE photos SET source = replace(source, '{original_workspace}', '{tmp_path / 'workspace'}')",
    )
    change(
        tmp_path / "workspace",
        f"UPDATE releases SET path = replace(path, '{original_workspace}', '{tmp_path / 'workspace'}')",
    )
    return tmp_path / "workspace"


def change(workspace: Path, statement: str, *values: object) -> None:
    """Change the catalog with plain SQLite."""
    with Collection.open(workspace / "c.homing") as collection, collection.storage._transaction() as database:
        database.execute("PRAGMA defer_foreign_keys = ON")
        database.execute(statement, values)


def checked(workspace: Path, *, repair: bool = False) -> list[Finding]:
    return check(workspace / "c.homing", repair=repair, extractor=tiny_extractor())


def repair_all(workspace: Path) -> list[Finding]:
    """Repair, check that no finding remains and that every photo is found, and return what was repaired."""
    found = checked(workspace)
    assert found and not any(finding.repaired for finding in found)
    repaired = checked(workspace, repair=True)
    assert [finding.problem for finding in repaired] == [finding.problem for finding in found]
    assert all(finding.repaired for finding in repaired), repaired
    assert checked(workspace) == []
    with Collection.open(workspace / "c.homing", extractor=tiny_extractor()) as collection:
        assert len(collection.index) == collection.info().photos == PHOTOS
        for path in (workspace / "photos").iterdir():
            assert Path(collection.search(path, k=1)[0].photo) == path
    return repaired


def test_an_intact_collection_has_no_findings(workspace: Path) -> None:
    assert checked(workspace) == checked(workspace, repair=True) == []
    with Collection.open(workspace / "c.homing", extractor=tiny_extractor()) as collection:
        assert collection.check() == []


@pytest.mark.parametrize("harm", ["cut", "flipped", "missing"])
def test_a_damaged_snapshot_is_rebuilt(workspace: Path, harm: str) -> None:
    snapshot = workspace / "c.homing" / "index.faiss"
    data = bytearray(snapshot.read_bytes())
    data[len(data) // 2] ^= 255
    snapshot.write_bytes(data[: len(data) // 2] if harm == "cut" else data)
    if harm == "missing":
        snapshot.unlink()
    assert [finding.part for finding in repair_all(workspace)] == ["index"]


def test_a_snapshot_with_other_codes_than_the_catalog_is_rebuilt(workspace: Path) -> None:
    for table, key, value in (("photos", "id", "code"), ("descriptors", "photo", "vector")):
        change(workspace, f"UPDATE {table} SET {value} = (SELECT {value} FROM {table} WHERE {key} = 4) WHERE {key} = 3")
    (finding,) = checked(workspace, repair=True)
    assert "holds 1 codes that differ from the catalog" in finding.problem
    assert finding.repaired
    assert checked(workspace) == []


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DELETE FROM descriptors WHERE photo = 3", "has no descriptor"),
        ("UPDATE descriptors SET vector = x'00' WHERE photo = 3", "has a descriptor of 1 bytes, expected 216"),
        ("UPDATE descriptors SET vector = zeroblob(216) WHERE photo = 3", "not of unit norm"),
        ("UPDATE photos SET code = x'0000' WHERE id = 3", "has a code of 2 bytes, expected 7"),
        ("UPDATE photos SET code = zeroblob(7) WHERE id = 3", "a code that does not match its descriptor"),
        ("UPDATE photos SET code = x'ff000000000000' WHERE id = 3", "a code that does not match its descriptor"),
    ],
)
def test_a_reference_is_recomputed_from_its_original(workspace: Path, statement: str, words: str) -> None:
    before = rows(workspace)
    change(workspace, statement)
    (finding,) = (each for each in repair_all(workspace) if each.part == "reference")
    assert words in finding.problem
    assert str(workspace / "photos" / "0002.png") in finding.problem
    assert rows(workspace) == before


def rows(workspace: Path) -> list[tuple[object, ...]]:
    with Collection.open(workspace / "c.homing") as collection:
        return collection.storage._fetch_all("SELECT id, code, vector FROM photos JOIN descriptors ON photo = id")


@pytest.mark.parametrize("harm", ["missing", "changed"])
def test_a_reference_without_its_original_is_reported(workspace: Path, harm: str) -> None:
    change(workspace, "DELETE FROM descriptors WHERE photo = 3")
    original = workspace / "photos" / "0002.png"
    original.unlink()
    if harm == "changed":
        shutil.copy(workspace / "photos" / "0004.png", original)
    (finding,) = checked(workspace, repair=True)
    assert not finding.repaired
    assert f"restore the original as {original}" in finding.action


def test_a_code_is_recomputed_from_its_descriptor(workspace: Path) -> None:
    change(workspace, "UPDATE photos SET code = x'00' WHERE id = 3")
    (workspace / "photos" / "0002.png").rename(workspace / "moved.png")
    assert all(finding.repaired for finding in checked(workspace, repair=True))
    assert checked(workspace) == []


def test_invalid_codes_get_one_line(workspace: Path) -> None:
    change(workspace, "UPDATE photos SET code = x'ff000000000000' WHERE id = 3")
    (workspace / "c.homing" / "index.faiss").unlink()
    with (
        Collection.open(workspace / "c.homing", extractor=tiny_extractor()) as collection,
        pytest.raises(CollectionError, match=r"homing check .* --repair"),
    ):
        collection.search(workspace / "photos" / "0000.png")


def test_released_files_are_compared_with_their_hashes(workspace: Path) -> None:
    (workspace / "out" / "0000.png").unlink()
    (workspace / "out" / "0001.jpg").write_bytes(b"another file")
    missing, changed = checked(workspace, repair=True)
    assert (missing.part, missing.repaired, changed.part, changed.repaired) == ("release", False, "release", False)
    assert "0000.png is missing" in missing.problem
    assert "0001.jpg is not the file that was released" in changed.problem
    assert (workspace / "out" / "0001.jpg").read_bytes() == b"another file"


def test_a_release_that_was_written_but_not_recorded_is_recorded(workspace: Path) -> None:
    change(workspace, "UPDATE releases SET written = 0 WHERE photo = 1")
    assert checked(workspace) == [], "another job may be writing it"
    change(workspace, "UPDATE releases SET changed = datetime('now', '-1 hour') WHERE photo = 1")
    (finding,) = repair_all(workspace)
    assert finding.part == "release"
    with Collection.open(workspace / "c.homing") as collection:
        assert collection.info().activated == 2


def test_a_repair_records_a_recent_release_at_once(workspace: Path) -> None:
    change(workspace, "UPDATE releases SET written = 0 WHERE photo = 1")
    assert [finding.repaired for finding in checked(workspace, repair=True)] == [True]


def test_a_planned_release_without_a_file_is_no_finding(workspace: Path) -> None:
    change(workspace, "UPDATE releases SET written = 0 WHERE photo = 1")
    (workspace / "out" / "0000.png").unlink()
    assert checked(workspace) == []


def test_stale_temporary_files_are_removed(workspace: Path) -> None:
    name = ".0123456789abcdef.tmp"
    for folder in ("c.homing", "out"):
        (workspace / folder / name).write_bytes(b"half")
    (workspace / "out" / ".mine.tmp").touch()
    assert checked(workspace) == []
    for file in (workspace / "c.homing" / name, workspace / "out" / name, workspace / "out" / ".mine.tmp"):
        os.utime(file, (0, 0))
    assert [finding.part for finding in repair_all(workspace)] == ["file", "file"]
    assert sorted(path.name for path in (workspace / "out").iterdir()) == [".mine.tmp", "0000.png", "0001.jpg"]


def test_a_write_ahead_log_of_a_crash_is_applied(workspace: Path, tmp_path: Path) -> None:
    with Collection.open(workspace / "c.homing", extractor=tiny_extractor()) as collection:
        collection.add(tiny_photos(tmp_path / "more", 1, seed=9))
        shutil.copytree(workspace / "c.homing", tmp_path / "crashed.homing")
    assert (tmp_path / "crashed.homing" / "catalog.sqlite-wal").stat().st_size > 0
    assert check(tmp_path / "crashed.homing", extractor=tiny_extractor()) == []
    with Collection.open(tmp_path / "crashed.homing", extractor=tiny_extractor()) as crashed:
        assert crashed.info().photos == PHOTOS + 1
        assert np.isin(PHOTOS + 1, crashed.index.contents()[0])
