"""Photos with unusual names are added, released, found and checked, or rejected in one line."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.collection.tiny import RECIPES, tiny_codebook, tiny_extractor, tiny_photos

from homing.collection import Collection
from homing.errors import HomingError

NAMES = [
    *("naïve ünï.png", "日本.png", "🏖.png", "e\u0301.png", "\u00e9.png", "new\nline.png", "tab\tand\x1b[31mred.png"),
    *(" space .png", "-dash.png", "quote'\".png", "100%s.png", "[red]markup.png", "back\\slash.png"),
    *("A.png", "a.png", "x" * 251 + ".png", "ü" * 125 + "z.png", "no suffix .png.png", "$(touch x);.png"),
]


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    with Collection.create(tmp_path / "c.homing", codebook=tiny_codebook(), extractor=tiny_extractor()) as created:
        yield created


def test_unusual_names_are_supported(collection: Collection, tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    for name, photo in zip(NAMES, tiny_photos(tmp_path / "created", len(NAMES)), strict=True):
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(photo.read_bytes())
    assert {outcome.state for outcome in collection.add(folder)} == {"added"}
    outcomes = collection.activate(folder, tmp_path / "out", recipe=RECIPES[0])
    assert all(outcome.state != "failed" for outcome in outcomes), outcomes
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(NAMES)
    for name in NAMES:
        assert Path(collection.search(tmp_path / "out" / name, k=1)[0].photo) == folder / name
    assert collection.check() == []


def test_only_a_name_too_long_with_its_new_suffix_fails(collection: Collection, tmp_path: Path) -> None:
    (photo,) = tiny_photos(tmp_path / "created", 1)
    long = photo.rename(photo.with_name("x" * 251 + ".png"))
    (outcome,) = collection.activate(long, tmp_path / "out", recipe=RECIPES[0], format="webp")
    assert outcome.state == "failed"
    assert outcome.reason is not None and "File name too long" in outcome.reason
    assert list((tmp_path / "out").iterdir()) == []


def test_names_that_differ_only_in_case_are_not_overwritten(collection: Collection, tmp_path: Path) -> None:
    first, second = tiny_photos(tmp_path / "created", 3)[::2]
    photos = [first.rename(first.with_name("a.png")), second.rename(second.with_name("A.png"))]
    with case_insensitive_disk(tmp_path) as disk:
        with pytest.raises(HomingError, match="would both be written to"):
            collection.activate(photos, disk / "out", recipe=RECIPES[0])
        assert list((disk / "out").iterdir()) == []
    outcomes = collection.activate(photos, tmp_path / "out", recipe=RECIPES[0])
    assert [outcome.released for outcome in outcomes] == [str(tmp_path / "out" / photo.name) for photo in photos]


@pytest.mark.parametrize("kind", ["homing", "lance"])
def test_folders_that_are_not_utf8_are_refused_in_one_line(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = tiny_codebook("IVF8,PQ12x8")
    good, odd = tmp_path / "photos", tmp_path / os.fsdecode(b"odd\xff")
    try:
        tiny_photos(odd / "photos", 2)
    except OSError:
        pytest.skip("this disk has only names in UTF-8")
    tiny_photos(good, 2)
    with Collection.create(tmp_path / f"c.{kind}", codebook=book, extractor=tiny_extractor()) as created:
        with pytest.raises(HomingError, match="not valid UTF-8; choose another"):
            created.activate(good, odd / "out", recipe=RECIPES[0])
        monkeypatch.chdir(odd)
        with pytest.raises(HomingError, match="not valid UTF-8; choose another"):
            created.activate(good, "out", recipe=RECIPES[0])
        outcomes = [*created.add("photos"), *created.activate("photos", tmp_path / "out", recipe=RECIPES[0])]
        reason = "the name of its folder is not valid UTF-8; rename the folder"
        assert [(outcome.state, outcome.reason) for outcome in outcomes] == [("failed", reason)] * 4
        assert [outcome.state for outcome in created.remove("photos")] == ["failed"]
        assert created.info().photos == 0


def test_a_null_character_is_refused_in_one_line(collection: Collection, tmp_path: Path) -> None:
    for call in (collection.add, collection.search, collection.remove, collection.export, Collection.open):
        with pytest.raises(HomingError, match="cannot be the name of a file"):
            call("a\0b")
    with pytest.raises(HomingError, match="cannot be the name of a file"):
        collection.activate(tiny_photos(tmp_path / "photos", 1), "a\0b", recipe=RECIPES[0])


@contextmanager
def case_insensitive_disk(folder: Path) -> Iterator[Path]:
    """A real disk on which a.png and A.png are the same file."""
    image, mount = folder / "disk.img", folder / "disk"
    mount.mkdir()
    image.write_bytes(bytes(4 << 20))
    for command in (["mkfs.vfat", image], ["mount", "-o", "loop", image, mount]):
        try:
            done = subprocess.run(command, capture_output=True, check=False)
        except FileNotFoundError:
            pytest.skip("making a FAT disk needs mkfs.vfat")
        if done.returncode:
            pytest.skip("mounting a FAT disk needs root, and a loop device")
    try:
        yield mount
    finally:
        subprocess.run(["umount", str(mount)], check=True)
