"""Generations together with additions, removals, concurrent writers, crashes and checks."""

import os
import shutil
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.collection.tiny import tiny_codebook, tiny_extractor, tiny_photos
from tests.conftest import descriptors
from torch import nn

from homing.codebooks import Codebook
from homing.collection import Collection, Outcome, check, delete_previous, migrate, switch
from homing.collection.storage import open_generation
from homing.collection.storage.sqlite import SqliteStorage
from homing.errors import BusyError, CollectionError
from homing.extractors import NetworkExtractor

NEW = "PQ12x4"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A collection of six small photos."""
    tiny_photos(tmp_path / "photos", 6)
    with Collection.create(tmp_path / "c", codebook=tiny_codebook(), extractor=tiny_extractor()) as collection:
        collection.add(tmp_path / "photos")
    return tmp_path / "c"


def opened(path: Path, generation: str = "current") -> Collection:
    return Collection.open(path, extractor=tiny_extractor(), generation=generation)


def migrated(path: Path, spec: str = NEW):
    return migrate(path, tiny_codebook(spec), extractor=tiny_extractor())


def switched(path: Path):
    return switch(path, extractor=tiny_extractor())


def names(path: Path, generation: str = "current") -> dict[str, int]:
    """The photos that a search finds, and their ids."""
    with opened(path, generation) as collection:
        matches = collection.search(next((path.parent / "photos").iterdir()), k=99)
        assert len(collection.index) == collection.info().photos == len(matches)
        return {Path(match.photo).name: match.id for match in matches}


def test_remove_applies_to_all_generations(path: Path) -> None:
    migrated(path)
    with opened(path) as current, opened(path, "next") as next_generation:
        assert len(next_generation.index) == 6
        current.remove(path.parent / "photos" / "0001.jpg")
        assert len(next_generation.index) == 5, "an open collection follows"
    assert "0001.jpg" not in names(path, "next")
    switched(path)
    with opened(path) as current:
        current.remove(path.parent / "photos" / "0002.png")
    assert names(path) == names(path, "previous") == {"0000.png": 1, "0003.jpg": 4, "0004.png": 5, "0005.jpg": 6}


def test_remove_applies_to_generations_before_the_previous_one(path: Path) -> None:
    for spec in (NEW, "IVF8,PQ12x4"):
        migrated(path, spec)
        switched(path)
    with opened(path) as current:
        current.remove(path.parent / "photos" / "0001.jpg")
    for folder in (path, path / "generation-2", path / "generation-3"):
        with closing(open_generation(SqliteStorage, path, folder)) as catalog:
            assert list(catalog.hashes_of(range(1, 7))) == [1, 3, 4, 5, 6]


def test_changes_since_the_migration_are_included(path: Path, tmp_path: Path) -> None:
    migrated(path)
    photos = path.parent / "photos"
    new = tiny_photos(tmp_path / "new", 8, seed=1)
    with opened(path) as current, opened(path, "next") as next_generation:
        assert len(next_generation.index) == 6
        current.add(new[6])
        shutil.copy(new[0], photos / "0000.png")
        assert [each.state for each in current.add(photos / "0000.png", replace=True)] == ["replaced"]
        moved = (photos / "0003.jpg").rename(photos / "moved.jpg")
        assert [each.state for each in current.add(moved)] == ["moved"]
        assert migrated(path).photos == 7
        assert len(next_generation.index) == 7
        current.activate(new[7], tmp_path / "out", recipe="paper-fast")
    assert switched(path).photos == 8
    expected = {"0000.png": 8, "0001.jpg": 2, "0002.png": 3, "moved.jpg": 4, "0004.png": 5, "0005.jpg": 6}
    assert names(path) == expected | {"0006.png": 7, "0007.jpg": 9}
    with opened(path) as current:
        assert current.info().passive == 7
        assert current.check() == []


def test_a_photo_that_was_replaced_and_added_again_is_migrated(path: Path, tmp_path: Path) -> None:
    migrated(path)
    target = path.parent / "photos" / "0000.png"
    shutil.copy(target, tmp_path / "before.png")
    shutil.copy(tiny_photos(tmp_path / "new", 1, seed=1)[0], target)
    with opened(path) as current:
        assert [each.state for each in current.add(target, replace=True)] == ["replaced"]
        assert [each.state for each in current.add(tmp_path / "before.png")] == ["added"]
    assert migrated(path).photos == 7
    assert names(path, "next") == names(path)


def test_repeating_a_killed_removal_completes_it(path: Path, monkeypatch) -> None:
    migrated(path)
    switched(path)
    with opened(path) as current:
        with monkeypatch.context() as broken, pytest.raises(KeyboardInterrupt):
            broken.setattr(SqliteStorage, "remove", _interrupt_second_call(SqliteStorage.remove))
            current.remove(3)
        assert [each.state for each in current.remove(3)] == ["removed"]
    assert names(path, "previous") == names(path)


def _interrupt_second_call(step: Callable[..., object]) -> Callable[..., object]:
    calls = iter([step])

    def interrupted(*arguments: object) -> object:
        if (first := next(calls, None)) is None:
            raise KeyboardInterrupt
        return first(*arguments)

    return interrupted


def test_ids_are_not_reused_after_a_migration(path: Path) -> None:
    with opened(path) as current:
        current.remove(6)
    migrated(path)
    switched(path)
    delete_previous(path)
    with opened(path) as current:
        assert [each.state for each in current.add(path.parent / "photos")] == ["known"] * 5 + ["added"]
    assert names(path)["0005.jpg"] == 7


def test_one_writer_for_all_generations(path: Path, tmp_path: Path) -> None:
    more = tiny_photos(tmp_path / "more", 3, seed=2)
    started, go_on = threading.Event(), threading.Event()

    def advance() -> None:
        started.set()
        go_on.wait(120)

    job = threading.Thread(target=migrate, args=(path, tiny_codebook(NEW)), kwargs={"advance": advance})
    job.start()
    assert started.wait(120)
    with opened(path) as current:
        assert len(current.search(more[0])) == 6, "searches continue"
        with pytest.raises(BusyError):
            current.add(more)
        with pytest.raises(BusyError):
            switched(path)
        with pytest.raises(BusyError):
            migrated(path)
    go_on.set()
    job.join()

    busy: list[type[Exception]] = []

    def while_adding(_: Outcome) -> None:
        for change in (migrated, switched, delete_previous):
            with pytest.raises(BusyError) as reported:
                change(path)
            busy.append(reported.type)

    with opened(path) as current:
        current.add(more[0], on_outcome=while_adding)
    assert len(busy) == 3
    assert switched(path).photos == 7


def test_only_the_current_generation_can_be_changed(path: Path, tmp_path: Path) -> None:
    more = tiny_photos(tmp_path / "more", 1, seed=2)
    migrated(path)
    with (
        opened(path, "next") as next_generation,
        pytest.raises(CollectionError, match="cannot be changed; open it again"),
    ):
        next_generation.add(more)
    with opened(path) as opened_before:
        switched(path)
        with pytest.raises(CollectionError, match="open it again"):
            opened_before.add(more)
        assert len(opened_before.search(more[0])) == 6, "an open collection can still be searched"
        delete_previous(path)
    assert sorted(each.name for each in path.iterdir()) == ["current", "generation-2", "snapshot.lock", "writer.lock"]
    with opened(path) as current:
        assert [each.state for each in current.add(more)] == ["added"]


def test_delete_previous_completes_after_a_crash(path: Path) -> None:
    for spec in (NEW, "IVF4,PQ12x4"):
        migrated(path, spec)
        switched(path)
    before = names(path)
    assert sorted(each.name for each in path.glob("generation-*")) == ["generation-2", "generation-3"]
    (path / "current").write_text("3 alone\n")  # as after a kill at this step
    with pytest.raises(CollectionError, match="no previous generation"):
        opened(path, "previous")
    found = check(path)
    assert {each.part for each in found} == {"file"}
    assert all("deleted" in each.problem for each in found)
    (path / "codebook").unlink()  # as after a kill at a later step
    delete_previous(path)
    assert sorted(each.name for each in path.iterdir()) == ["current", "generation-3", "snapshot.lock", "writer.lock"]
    assert check(path) == []
    assert names(path) == before


def test_a_lost_file_current_removes_no_references(path: Path, tmp_path: Path) -> None:
    migrated(path)
    switched(path)
    with opened(path) as current:
        current.add(tiny_photos(tmp_path / "more", 1, seed=2))
    (path / "current").unlink()
    for change in (migrated, switched):
        with pytest.raises(CollectionError, match="write the number of that generation into it"):
            change(path)
    (path / "current").write_text("2\n")
    with opened(path) as current:
        assert current.info().photos == 7


def test_a_repair_covers_every_generation_and_leftovers(path: Path) -> None:
    migrated(path)
    names(path, "next")  # saves a snapshot
    assert check(path) == []
    (path / "generation-2" / "index.faiss").write_bytes(b"scribble")
    draft = path / ".0123456789abcdef.tmp"  # a next generation whose creation was killed
    shutil.copytree(path / "generation-2", draft)
    old = (path / "codebook").stat().st_mtime - 10_000
    os.utime(draft, (old, old))
    assert [each.part for each in check(path)] == ["file", "index"]
    assert all(each.repaired for each in check(path, repair=True))
    assert check(path) == []
    assert not draft.exists()
    switched(path)
    (path / "collection.toml").write_text("")  # of the previous generation
    assert [each.part for each in check(path)] == ["settings"]
    assert all(each.repaired for each in check(path, repair=True))
    assert len(names(path, "previous")) == 6
    shutil.rmtree(path / "generation-2")
    with pytest.raises(CollectionError, match="restore it from a backup"):
        check(path)


def test_missing_photos_are_migrated_once_their_files_are_back(path: Path) -> None:
    other = NetworkExtractor(nn.AdaptiveAvgPool2d(6), name="other", size=24, device="cpu")
    wanted = Codebook.train(descriptors(500, dim=other.dim).numpy(), spec=NEW, extractor=other, name="other")
    assert wanted.extractor_fingerprint != tiny_codebook().extractor_fingerprint
    (path.parent / "photos" / "0002.png").rename(path.parent / "away.png")
    done = migrate(path, wanted, extractor=other)
    assert (done.photos, len(done.missing)) == (5, 1)
    with Collection.open(path, extractor=other, generation="next") as next_generation:
        assert len(next_generation.index) == 5
        (path.parent / "away.png").rename(path.parent / "photos" / "0002.png")
        assert migrate(path, wanted, extractor=other).photos == 6
        assert len(next_generation.index) == 6, "an open collection follows"
    assert switch(path, extractor=other).photos == 6
    with Collection.open(path, extractor=other) as current:
        assert sorted(match.id for match in current.search(path.parent / "photos" / "0002.png")) == [1, 2, 3, 4, 5, 6]
        assert current.check() == []
