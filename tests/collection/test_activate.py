import contextlib
import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from homing.activation import RECIPES
from homing.collection import Collection
from homing.errors import CollectionError, HomingError, UnknownNameError
from homing.photo import Photo


@pytest.fixture
def activated(collection: Collection, photos: Path, tmp_path: Path) -> Path:
    """The folder where `collection` released the flower and the gray photo with the fast recipe."""
    paths = [photos / "flower.jpg", photos / "camera.png"]
    outcomes = collection.activate(paths, tmp_path / "out", recipe="paper-fast")
    assert [outcome.state for outcome in outcomes] == ["activated", "activated"]
    return tmp_path / "out"


def test_released_files_are_found_as_their_originals(collection: Collection, photos: Path, activated: Path) -> None:
    for released in activated.iterdir():
        match = collection.search(released)[0]
        assert (Path(match.photo), match.state) == (photos / released.name, "activated")


def test_activating_does_not_change_the_index(collection: Collection, photos: Path, tmp_path: Path) -> None:
    collection.add(photos)
    before = collection.search(photos / "chelsea.png")
    stored = collection.index.to_bytes()
    collection.activate(photos / "flower.jpg", tmp_path / "out", recipe="paper-fast")
    assert collection.index.to_bytes() == stored
    assert collection.search(photos / "chelsea.png") == before
    assert collection.info().activated == 1


def test_activating_again_does_nothing(collection: Collection, photos: Path, activated: Path, monkeypatch) -> None:
    monkeypatch.setattr("homing.collection.release.activate_batch", _never)
    again = collection.activate([photos / "flower.jpg", photos / "camera.png"], activated, recipe="paper-fast")
    assert [(outcome.state, outcome.resumed) for outcome in again] == [("activated", True)] * 2
    assert all(outcome.psnr > 43 for outcome in again)


def test_activated_again_if_the_file_is_missing_or_the_recipe_differs(
    collection: Collection, photos: Path, activated: Path
) -> None:
    before = (activated / "flower.jpg").read_bytes()
    (activated / "flower.jpg").unlink()
    (outcome,) = collection.activate(photos / "flower.jpg", activated, recipe="paper-fast")
    assert (activated / "flower.jpg").exists() and not outcome.resumed
    collection.activate(photos / "flower.jpg", activated, recipe="paper")
    assert (activated / "flower.jpg").read_bytes() != before


def test_the_next_run_completes_a_crash_before_the_write(
    collection: Collection, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr("homing._io.paths.write_atomically", _crash)
        with pytest.raises(KeyboardInterrupt):
            collection.activate(photos / "flower.jpg", out, recipe="paper-fast")
    assert collection.info().activated == 0
    collection.activate(photos / "flower.jpg", out, recipe="paper-fast")
    assert collection.info().activated == 1


def test_a_crash_while_releasing_again_keeps_earlier_releases(
    collection: Collection, photos: Path, activated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = (activated / "flower.jpg").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("homing._io.paths.write_atomically", _crash)
        with pytest.raises(KeyboardInterrupt):
            collection.activate(photos / "flower.jpg", activated, recipe="paper")
    assert (activated / "flower.jpg").read_bytes() == published
    assert collection.info().activated == 2
    (outcome,) = collection.activate(photos / "flower.jpg", activated, recipe="paper")
    assert outcome.state == "activated"
    (activated / "first.jpg").write_bytes(published)
    assert [each.state for each in collection.add(activated / "first.jpg")] == ["known"]


def test_a_crash_while_releasing_the_same_bytes_again_keeps_the_release(
    collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("RGBA", (64, 64), (9, 99, 200, 0)).save(tmp_path / "clear.png")
    collection.activate(tmp_path / "clear.png", tmp_path / "out", recipe="paper-fast")
    with monkeypatch.context() as patch:
        patch.setattr("homing.collection.release.write_file", _crash)
        with pytest.raises(KeyboardInterrupt):
            collection.activate(tmp_path / "clear.png", tmp_path / "out", recipe="paper")
    assert collection.info().unchanged == 1


def test_every_setting_of_a_recipe_matters(collection: Collection, photos: Path, activated: Path) -> None:
    before = (activated / "flower.jpg").read_bytes()
    other = replace(RECIPES["paper-fast"], steps=2)
    collection.activate(photos / "flower.jpg", activated, recipe=other)
    assert collection.storage.find_release(1, hashlib.sha256(before).hexdigest(), str(activated / "flower.jpg"))
    assert collection.storage.counts()["activated"] == 2
    rows = collection.storage._fetch_all("SELECT DISTINCT recipe FROM releases WHERE photo = 1")
    assert len(rows) == 2


def test_a_file_that_appears_during_activation_is_not_overwritten(
    collection: Collection, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from homing.activation import activate_batch

    def slow(*arguments: object, **settings: object) -> object:
        (tmp_path / "out" / "flower.jpg").write_bytes(b"another file")
        return activate_batch(*arguments, **settings)

    monkeypatch.setattr("homing.collection.release.activate_batch", slow)
    (outcome,) = collection.activate(photos / "flower.jpg", tmp_path / "out", recipe="paper-fast")
    assert outcome.state == "failed"
    assert (tmp_path / "out" / "flower.jpg").read_bytes() == b"another file"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["flower.jpg"]


def test_other_spellings_of_the_output_folder(
    collection: Collection, photos: Path, activated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(activated)
    monkeypatch.setattr("homing.collection.release.activate_batch", _never)
    for spelling in (tmp_path / "x" / ".." / "out", tmp_path / "link"):
        (tmp_path / "x").mkdir(exist_ok=True)
        (outcome,) = collection.activate(photos / "flower.jpg", spelling, recipe="paper-fast")
        assert outcome.state == "activated"


def test_output_inside_the_collection_is_rejected(collection: Collection, photos: Path) -> None:
    with pytest.raises(HomingError, match="lies inside the collection"):
        collection.activate(photos, collection.path / "out")


def test_a_fully_transparent_photo_is_released_unchanged(collection: Collection, tmp_path: Path) -> None:
    Image.new("RGBA", (64, 64), (9, 99, 200, 0)).save(tmp_path / "clear.png")
    (outcome,) = collection.activate(tmp_path / "clear.png", tmp_path / "out", recipe="paper-fast", graphics=True)
    assert outcome.state == "unchanged"
    assert "graphic" not in str(outcome.reason)
    assert (tmp_path / "out" / "clear.png").read_bytes() == (tmp_path / "clear.png").read_bytes()


@pytest.mark.parametrize("format", [None, "jpeg"])
def test_a_graphic_stays_unchanged_unless_asked_for(
    collection: Collection, photos: Path, tmp_path: Path, format: str | None
) -> None:
    with Image.open(photos / "chelsea.png") as image:
        image.convert("P").save(tmp_path / "palette.png")
    before = (tmp_path / "palette.png").read_bytes()
    shutil.copy(photos / "flower.jpg", tmp_path)
    files = [tmp_path / "palette.png", tmp_path / "flower.jpg"]
    graphic, photo = collection.activate(files, tmp_path / "out", recipe="paper-fast", format=format)
    assert (graphic.state, photo.state) == ("unchanged", "activated")
    assert graphic.reason is not None and graphic.reason.endswith("--graphics, in Python graphics=True, activates it")
    assert graphic.bytes_before == len(before)
    assert graphic.released is not None and graphic.bytes_after == Path(graphic.released).stat().st_size
    assert (graphic.notes == []) == (format is None)
    assert (graphic.bytes_after == graphic.bytes_before) == (format is None)
    activated_graphic, _ = collection.activate(
        files, tmp_path / "out", recipe="paper-fast", format=format, graphics=True
    )
    assert (activated_graphic.state, activated_graphic.resumed) == ("activated", False)
    if format is None:
        assert activated_graphic.bytes_after is not None and activated_graphic.bytes_after > 1.5 * len(before)
        assert [note.partition(" from ")[0] for note in activated_graphic.notes] == ["PNG grew"]
    resumed, _ = collection.activate(files, tmp_path / "out", recipe="paper-fast", format=format, graphics=True)
    assert resumed.resumed
    assert (resumed.notes, resumed.bytes_after) == (activated_graphic.notes, activated_graphic.bytes_after)


def test_only_the_photo_that_is_too_large_for_memory_fails(
    collection: Collection, photos: Path, tmp_path: Path, monkeypatch
) -> None:
    import torch

    def greedy(*_: object, **__: object) -> object:
        return torch.empty(2**55)  # raises PyTorch's out-of-memory error

    with monkeypatch.context() as patch:
        patch.setattr("homing.collection.release.activate_batch", greedy)
        (outcome,) = collection.activate(photos / "flower.jpg", tmp_path / "out")
    assert outcome.state == "failed"
    assert outcome.reason == "too large for the available memory"
    monkeypatch.setattr(collection.extractor.__class__, "resize", greedy)
    assert [each.state for each in collection.add(photos / "flower.jpg")] == ["failed"]


def test_a_folder_at_the_target_path_is_named(collection: Collection, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "flower.jpg").mkdir(parents=True)
    (outcome,) = collection.activate(photos / "flower.jpg", tmp_path / "out", recipe="paper-fast")
    assert outcome.state == "failed"
    assert "flower.jpg" in outcome.reason


def _never(*_: object, **__: object) -> None:
    pytest.fail("activated again")


def _crash(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_existing_files_are_not_overwritten(collection: Collection, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "flower.jpg").write_bytes(b"another file")
    (outcome,) = collection.activate(photos / "flower.jpg", out, recipe="paper-fast")
    assert outcome.state == "failed"
    assert "was not written for this photo" in outcome.reason
    assert (out / "flower.jpg").read_bytes() == b"another file"


def test_a_released_file_is_recognized(collection: Collection, activated: Path, tmp_path: Path) -> None:
    (outcome,) = collection.activate(activated / "flower.jpg", tmp_path / "twice", recipe="paper-fast")
    assert outcome.state == "failed"
    assert "is the released version of" in outcome.reason
    assert [each.state for each in collection.add(activated)] == ["known", "known"]


def test_target_names_follow_folder_and_format(collection: Collection, photos: Path, tmp_path: Path) -> None:
    nested = tmp_path / "in" / "2024" / "flower.jpg"
    nested.parent.mkdir(parents=True)
    nested.write_bytes((photos / "flower.jpg").read_bytes())
    (outcome,) = collection.activate(tmp_path / "in", tmp_path / "out", recipe="paper-fast", format="png")
    assert outcome.released == str(tmp_path / "out" / "2024" / "flower.png")
    assert Photo.load(outcome.released).format == "PNG"


def test_two_photos_with_one_target_are_rejected(collection: Collection, photos: Path, tmp_path: Path) -> None:
    duplicate = tmp_path / "flower.jpg"
    duplicate.write_bytes((photos / "camera.png").read_bytes())
    with pytest.raises(HomingError, match="would both be written to"):
        collection.activate([photos / "flower.jpg", duplicate], tmp_path / "out")


def test_photos_are_never_overwritten_by_their_releases(collection: Collection, photos: Path) -> None:
    with pytest.raises(HomingError, match="are in the output folder"):
        collection.activate(photos, photos)


def test_an_output_folder_that_cannot_be_written_is_named(collection: Collection, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HomingError, match="cannot write into the out folder"):
        collection.activate(photos, tmp_path / "file" / "out")


def test_unknown_recipes_and_formats_get_a_hint(collection: Collection, photos: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'paper'"):
        collection.activate(photos, tmp_path / "out", recipe="papr")
    with pytest.raises(UnknownNameError, match="did you mean 'jpeg'"):
        collection.activate(photos, tmp_path / "out", recipe=RECIPES["paper"], format="jepg")


def test_a_full_disk_fails_the_photo_only(collection: Collection, photos: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "64k") as disk:
        (outcome,) = collection.activate(photos / "flower.jpg", disk, recipe="paper-fast")
        assert outcome.state == "failed"
        assert "No space left on device" in outcome.reason
        assert list(disk.iterdir()) == []
    assert collection.info().activated == 0
    assert collection.search(photos / "flower.jpg")[0].state == "passive"


def test_a_collection_on_a_full_disk_fails_the_photos_and_opens_again(photos: Path, tmp_path: Path, extractor) -> None:
    with small_disk(tmp_path / "disk", "12m") as disk:
        with Collection.create(disk / "c.homing", extractor=extractor) as full:
            filler = disk / "filler"
            with contextlib.suppress(OSError):
                filler.write_bytes(b"x" * 20_000_000)
            outcomes = full.add(photos)
        assert {outcome.state for outcome in outcomes} == {"failed"}
        assert not any(outcome.photo in outcome.reason for outcome in outcomes)
        filler.unlink()
        with Collection.open(disk / "c.homing", extractor=extractor) as again:
            assert again.info().photos == 0
            assert [outcome.state for outcome in again.add(photos)] == ["added"] * 4


def test_create_fails_on_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "1m") as disk, pytest.raises(CollectionError, match="cannot"):
        Collection.create(disk / "c.homing")


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A real disk with little space."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
