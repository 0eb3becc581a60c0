"""Jobs on Ray release photos like one process: exactly once, without overwriting other files."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from tests.cluster.helpers import verify_releases
from tests.collection.tiny import RECIPES, tiny_photos
from typer.testing import CliRunner

from homing import cluster
from homing.cli import app
from homing.cluster import jobs
from homing.codebooks import Codebook
from homing.collection import Collection, Outcome
from homing.collection.release import Task
from homing.photo import Photo, PhotoFile, find_photos

pytestmark = pytest.mark.usefixtures("ray")


@pytest.fixture
def collection_path(tmp_path: Path, book: Codebook) -> Path:
    Collection.create(tmp_path / "c.homing", codebook=book).close()
    return tmp_path / "c.homing"


def activated(photos: Path, collection_path: Path, out: Path, gpus: int = 0) -> dict[str, Outcome]:
    outcomes: list[Outcome] = []
    found, resources = find_photos([photos]), cluster.Resources(gpus=gpus)
    took = cluster.activate(
        found, str(collection_path), out, recipe=RECIPES[0], resources=resources, on_outcome=outcomes.append
    )
    assert [stage.stage for stage in took] == ["read", "decode", "activate", "write"]
    reported = {Path(outcome.photo).name: outcome for outcome in outcomes}
    assert len(reported) == len(outcomes)
    return reported


@pytest.mark.parametrize("gpus", [0, 1])
def test_every_photo_is_released_once(collection_path: Path, tmp_path: Path, gpus: int) -> None:
    paths = tiny_photos(tmp_path / "photos", 40)
    first = activated(tmp_path / "photos", collection_path, tmp_path / "out", gpus)
    assert {outcome.state for outcome in first.values()} <= {"activated", "unchanged"}
    assert sum(outcome.state == "activated" for outcome in first.values()) > 20
    with Collection.open(collection_path) as collection:
        verify_releases(collection, paths, tmp_path / "out")
        on_one_machine = collection.activate(tmp_path / "photos", tmp_path / "out", recipe=RECIPES[0])
        again = {name: replace(outcome, resumed=True) for name, outcome in first.items()}
        assert {Path(outcome.photo).name: outcome for outcome in on_one_machine} == again, (
            "one machine does not know the releases of the job"
        )
    when = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "out").iterdir()}
    assert activated(tmp_path / "photos", collection_path, tmp_path / "out") == again
    assert {file.name: file.stat().st_mtime_ns for file in (tmp_path / "out").iterdir()} == when


def test_a_failed_photo_does_not_stop_the_others(collection_path: Path, tmp_path: Path) -> None:
    paths = tiny_photos(tmp_path / "photos", 4)
    (tmp_path / "photos" / "0050.jpg").write_text("no photo")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / paths[2].name).write_bytes(b"theirs")
    reported = activated(tmp_path / "photos", collection_path, tmp_path / "out")
    assert "not a photo" in str(reported["0050.jpg"].reason)
    assert "was not written for this photo" in str(reported[paths[2].name].reason)
    assert (tmp_path / "out" / paths[2].name).read_bytes() == b"theirs"
    assert sorted(name for name, outcome in reported.items() if outcome.state == "failed") == ["0002.png", "0050.jpg"]


def test_a_file_written_by_a_killed_worker_is_recognized(collection_path: Path, tmp_path: Path) -> None:
    paths = tiny_photos(tmp_path / "photos", 3)
    activated(tmp_path / "photos", collection_path, tmp_path / "out")
    with Collection.open(collection_path) as collection, collection.storage._transaction() as change:
        change.execute("UPDATE releases SET written = 0")  # as if the worker was killed before it recorded them
    reported = activated(tmp_path / "photos", collection_path, tmp_path / "out")
    assert {outcome.state for outcome in reported.values()} <= {"activated", "unchanged"}
    with Collection.open(collection_path) as collection:
        verify_releases(collection, paths, tmp_path / "out")


def test_large_photos_are_decoded_where_they_are_activated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = tiny_photos(tmp_path / "photos", 3)
    monkeypatch.setattr(jobs, "_MAX_PIXEL_BYTES", 1)
    items = [(Task(path, tmp_path / path.name), PhotoFile(str(path), path.read_bytes())) for path in paths]
    assert [type(photo) for _, photo in jobs.decode_some(items)] == [Photo, PhotoFile, PhotoFile]


def test_the_command_writes_another_format(collection_path: Path, tmp_path: Path) -> None:
    tiny_photos(tmp_path / "photos", 2)
    arguments = ["cluster", "activate", tmp_path / "photos", "--collection", collection_path, "--out", tmp_path / "out"]
    done = CliRunner().invoke(
        app, [*map(str, arguments), "--recipe", "paper-fast", "--format", "png", "--gpus", "0", "--workers", "1"]
    )
    assert done.exit_code == 0, done.output
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["0000.png", "0001.png"]
    with Collection.open(collection_path) as collection:
        for file in (tmp_path / "out").iterdir():
            found = collection.storage.find_released(hashlib.sha256(file.read_bytes()).hexdigest())
            assert found is not None


def test_the_command_activates_graphics_only_with_the_option(collection_path: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    with Image.open(tiny_photos(tmp_path, 1)[0]) as image:
        image.quantize(16).save(tmp_path / "photos" / "palette.png")
    before = (tmp_path / "photos" / "palette.png").read_bytes()
    arguments = ["cluster", "activate", tmp_path / "photos", "--collection", collection_path, "--out", tmp_path / "out"]
    command = [*map(str, arguments), "--recipe", "paper-fast", "--gpus", "0", "--workers", "1", "--json"]
    for options, state in (([], "unchanged"), (["--graphics"], "activated")):
        done = CliRunner().invoke(app, [*command, *options])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["counts"][state] == 1
        assert ((tmp_path / "out" / "palette.png").read_bytes() == before) == (state == "unchanged")
