import subprocess
from pathlib import Path

import pytest

from homing.activation import RECIPES
from homing.collection import Collection
from homing.errors import HomingError, UnknownNameError
from homing.photo import Photo


@pytest.fixture
def activated(collection: Collection, photos: Path, tmp_path: Path) -> Path:
    """The folder where `collection` released the flower and the grey photo with the fast recipe."""
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


def test_is_not_done_again(collection: Collection, photos: Path, activated: Path, monkeypatch) -> None:
    monkeypatch.setattr("homing.collection._activating.activate", None)  # calling it would raise
    again = collection.activate([photos / "flower.jpg", photos / "camera.png"], activated, recipe="paper-fast")
    assert [outcome.state for outcome in again] == ["activated", "activated"]
    assert all(outcome.psnr > 43 for outcome in again)


def test_is_done_again_when_the_file_is_gone_or_another_recipe_is_asked_for(
    collection: Collection, photos: Path, activated: Path
) -> None:
    before = (activated / "flower.jpg").read_bytes()
    (activated / "flower.jpg").unlink()
    collection.activate(photos / "flower.jpg", activated, recipe="paper-fast")
    assert (activated / "flower.jpg").exists()
    collection.activate(photos / "flower.jpg", activated, recipe="paper")
    assert (activated / "flower.jpg").read_bytes() != before


def test_a_crash_between_the_plan_and_the_file_is_finished_by_the_next_run(
    collection: Collection, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr("homing.collection._activating.write_atomically", _crash)
        with pytest.raises(KeyboardInterrupt):
            collection.activate(photos / "flower.jpg", out, recipe="paper-fast")
    assert collection.info().activated == 0
    collection.activate(photos / "flower.jpg", out, recipe="paper-fast")
    assert collection.info().activated == 1


def _crash(*_: object) -> None:
    raise KeyboardInterrupt


def test_files_of_others_are_not_written_over(collection: Collection, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "flower.jpg").write_bytes(b"somebody's")
    (outcome,) = collection.activate(photos / "flower.jpg", out, recipe="paper-fast")
    assert outcome.state == "failed"
    assert "was not written for this photo" in outcome.reason
    assert (out / "flower.jpg").read_bytes() == b"somebody's"


def test_a_released_file_is_known_as_such(collection: Collection, activated: Path, tmp_path: Path) -> None:
    (outcome,) = collection.activate(activated / "flower.jpg", tmp_path / "twice", recipe="paper-fast")
    assert outcome.state == "unchanged"
    assert "is the released version of" in outcome.reason
    assert [each.state for each in collection.add(activated)] == ["known", "known"]


def test_names_follow_the_folder_and_the_format(collection: Collection, photos: Path, tmp_path: Path) -> None:
    nested = tmp_path / "in" / "2024" / "flower.jpg"
    nested.parent.mkdir(parents=True)
    nested.write_bytes((photos / "flower.jpg").read_bytes())
    (outcome,) = collection.activate(tmp_path / "in", tmp_path / "out", recipe="paper-fast", format="png")
    assert outcome.released == tmp_path / "out" / "2024" / "flower.png"
    assert Photo.load(outcome.released).format == "PNG"


def test_two_photos_for_one_file_are_refused(collection: Collection, photos: Path, tmp_path: Path) -> None:
    twin = tmp_path / "flower.jpg"
    twin.write_bytes((photos / "camera.png").read_bytes())
    with pytest.raises(HomingError, match="would both be written to"):
        collection.activate([photos / "flower.jpg", twin], tmp_path / "out")


def test_photos_are_never_released_onto_themselves(collection: Collection, photos: Path) -> None:
    with pytest.raises(HomingError, match="lie in the out folder"):
        collection.activate(photos, photos)


def test_an_out_folder_that_cannot_be_written_is_named(collection: Collection, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HomingError, match="cannot write into the out folder"):
        collection.activate(photos, tmp_path / "file" / "out")


def test_unknown_recipes_and_formats_get_a_hint(collection: Collection, photos: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'paper'"):
        collection.activate(photos, tmp_path / "out", recipe="papr")
    with pytest.raises(UnknownNameError, match="did you mean 'jpeg'"):
        collection.activate(photos, tmp_path / "out", recipe=RECIPES["paper"], format="jepg")


def test_a_full_disk_fails_the_photo_and_harms_nothing(collection: Collection, photos: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        (outcome,) = collection.activate(photos / "flower.jpg", disk, recipe="paper-fast")
        assert outcome.state == "failed"
        assert "No space left on device" in outcome.reason
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    assert collection.info().activated == 0
    assert collection.search(photos / "flower.jpg")[0].state == "passive"
