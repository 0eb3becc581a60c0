"""homing.Client: releases, comparisons and roles, against a real server."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from tests.service.conftest import Server, running_server

import homing
from homing.errors import HomingError
from homing.extractors import Extractor


@pytest.fixture(scope="module")
def released(template: Path, extractor: Extractor, tmp_path_factory: pytest.TempPathFactory) -> Iterator[homing.Client]:
    """A client of a separate server for these tests."""
    folder = shutil.copytree(template, tmp_path_factory.mktemp("released") / "own.homing")
    with running_server(folder, extractor) as served, homing.Client(served.address) as client:
        yield client


def test_the_file_to_release_is_written_under_the_photos_name(
    released: homing.Client, photos: Path, tmp_path: Path
) -> None:
    (outcome,) = released.activate(photos / "rocket.jpg", tmp_path / "out", recipe="homing-fast", psnr=42)
    assert outcome.state == "activated" and outcome.released == str(tmp_path / "out" / "rocket.jpg")
    assert (
        isinstance(outcome, homing.Outcome) and outcome.photo == str(photos / "rocket.jpg") and outcome.reason is None
    )
    before, after = homing.Photo.load(photos / "rocket.jpg"), homing.Photo.load(tmp_path / "out" / "rocket.jpg")
    quality = homing.measure(before.pixels(), after.pixels())
    assert (outcome.psnr, outcome.ssim, outcome.linf) == pytest.approx(
        (quality.psnr, quality.ssim, quality.linf), abs=0.01
    )
    assert outcome.bytes_before == (photos / "rocket.jpg").stat().st_size and outcome.notes == []
    assert outcome.bytes_after == (tmp_path / "out" / "rocket.jpg").stat().st_size
    assert outcome.id is not None
    one = released.reference(outcome.id)
    (release,) = one.releases
    assert one.state == release.state == "activated" and release.sha256 == after.sha256
    assert release.psnr == pytest.approx(quality.psnr, abs=0.01)


def test_repeated_activation_is_idempotent_and_keeps_other_files(
    released: homing.Client, photos: Path, tmp_path: Path
) -> None:
    (first,) = released.activate(str(photos / "flower.jpg"), str(tmp_path), recipe="homing-fast", format="png")
    assert first.released == str(tmp_path / "flower.png")
    assert released.activate(photos / "flower.jpg", tmp_path, recipe="homing-fast", format="png") == [first]
    (tmp_path / "flower.png").write_bytes(b"another file")
    (refused,) = released.activate(photos / "flower.jpg", tmp_path, recipe="homing-fast", format="png")
    assert refused.state == "failed" and "exists and is another file" in str(refused.reason)
    assert (tmp_path / "flower.png").read_bytes() == b"another file"
    assert [each.name for each in tmp_path.iterdir()] == ["flower.png"]


def test_folders_are_activated_in_order_under_their_relative_names(
    released: homing.Client, photos: Path, tmp_path: Path
) -> None:
    """Outcomes and files equal those of the library."""
    for name in ("a", "b"):
        (tmp_path / "in" / name).mkdir(parents=True)
    shutil.copy(photos / "chelsea.png", tmp_path / "in/a/cat.png")
    shutil.copy(photos / "camera.png", tmp_path / "in/b/cat.png")
    (tmp_path / "in/broken.jpg").write_text("no photo")
    reported: list[homing.Outcome] = []
    outcomes = released.activate(tmp_path / "in", tmp_path / "out", recipe="homing-fast", on_outcome=reported.append)
    with homing.Collection.create(tmp_path / "here.homing") as collection:
        expected = collection.activate(tmp_path / "in", tmp_path / "here", recipe="homing-fast")
    assert reported == outcomes and [each.photo for each in outcomes] == sorted(each.photo for each in expected)
    assert {(each.photo, each.state) for each in outcomes} == {(each.photo, each.state) for each in expected}
    written = {path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*.*")}
    assert written == {path.relative_to(tmp_path / "here") for path in (tmp_path / "here").rglob("*.*")}
    shutil.copy(photos / "camera.png", tmp_path / "cat.png")
    with pytest.raises(HomingError, match="would both be written to"):
        released.activate([tmp_path / "cat.png", tmp_path / "in/a/cat.png"], tmp_path / "out")


def test_a_file_has_the_requested_format_whatever_was_released_last(
    released: homing.Client, photos: Path, tmp_path: Path
) -> None:
    formats = [None, "png", None]  # the third call reuses the first release
    files = []
    for number, format in enumerate(formats):
        (outcome,) = released.activate(
            photos / "flower.jpg", tmp_path / str(number), recipe="homing-fast", format=format
        )
        files.append(outcome.released)
    assert [homing.Photo.load(file).format for file in files] == ["JPEG", "PNG", "JPEG"]


def test_a_failed_release_is_an_outcome_with_a_reason(released: homing.Client, tmp_path: Path) -> None:
    (tmp_path / "notes.jpg").write_text("no photo")
    (outcome,) = released.activate(tmp_path / "notes.jpg", tmp_path / "out")
    assert outcome.state == "failed" and outcome.photo == f"{tmp_path}/notes.jpg"
    assert list((tmp_path / "out").iterdir()) == []


def test_invalid_activate_options_raise_a_one_line_error(released: homing.Client, photos: Path, tmp_path: Path) -> None:
    with pytest.raises(HomingError, match="unknown recipe 'homin'; did you mean 'homing'"):
        released.activate(photos / "rocket.jpg", tmp_path, recipe="homin")
    with pytest.raises(HomingError, match="format"):
        released.activate(photos / "rocket.jpg", tmp_path, format="gif")


def test_graphics_are_activated_only_with_the_option(released: homing.Client, photos: Path, tmp_path: Path) -> None:
    with Image.open(photos / "chelsea.png") as image:
        image.resize((200, 150)).quantize(64).save(tmp_path / "palette.png")
    (outcome,) = released.activate(tmp_path / "palette.png", tmp_path / "first", recipe="homing-fast")
    assert outcome.state == "unchanged" and "graphic" in str(outcome.reason)
    (outcome,) = released.activate(tmp_path / "palette.png", tmp_path / "second", recipe="homing-fast", graphics=True)
    assert outcome.state == "activated"


def test_two_photos_are_compared(released: homing.Client, photos: Path, copy: Path) -> None:
    near = released.compare(copy, photos / "rocket.jpg")
    assert not near.same_size and near.quality is None and near.aligned and near.false_match_probability < 0.01
    with Image.open(BytesIO(near.pictures["overlay"])) as picture:
        assert picture.size == Image.open(BytesIO(near.pictures["first"])).size
    same = released.compare(homing.Photo.load(copy), copy)
    assert same.same_size and same.quality == homing.Quality(float("inf"), 1.0, 0.0) and same.distance < 1e-3
    assert released.compare(copy, photos / "camera.png").distance > near.distance


def test_a_key_allows_what_its_role_permits(keyed_server: Server, keys: dict[str, str], copy: Path) -> None:
    with homing.Client(keyed_server.address, keys["search"]) as client:
        assert client.search(copy, k=1)[0].photo == "rocket.jpg"
        with pytest.raises(HomingError, match=r"contribute[^\n]*$"):
            client.add(copy)
    with homing.Client(keyed_server.address) as client, pytest.raises(HomingError, match=r"key[^\n]*$"):
        client.info()


def test_a_recipe_is_given_by_name_only(released: homing.Client, photos: Path, tmp_path: Path) -> None:
    with pytest.raises(HomingError, match="a service takes a recipe by name only, such as 'homing', got Recipe"):
        released.activate(photos / "rocket.jpg", tmp_path / "out", recipe=homing.RECIPES["homing"])
