"""The speed bench on the command line."""

import json
from pathlib import Path

import pytest
from tests.bench.helpers import homing, small_network, small_photos
from tests.conftest import descriptors

from homing import extractors
from homing.bench.benches._speed_files import STAGES
from homing.bench.benches.speed import SpeedSettings, copy_photos, demo_jpegs
from homing.codebooks import Codebook
from homing.edits import PAPER
from homing.errors import HomingError
from homing.photo import Photo

pytestmark = pytest.mark.slow

PHOTOS = ["a", "b", "c"]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small photos, one unreadable file, and codebooks of a small network: PQ and Flat."""
    folder = tmp_path_factory.mktemp("workspace")
    network = extractors.load(str(small_network(folder)), device="cpu")
    small_photos(folder / "photos", PHOTOS, seed=1)
    (folder / "photos" / "bad.jpg").write_text("hello")
    (folder / "bad").mkdir()
    (folder / "bad" / "bad.jpg").write_text("hello")
    for spec in ("IVF2,PQ4x2", "Flat"):
        book = Codebook.train(descriptors(300, dim=network.dim).numpy(), spec=spec, extractor=network, name=spec)
        book.write(folder / f"{spec}.codebook")
    return folder


def bench(workspace: Path, out: Path, *more: object, code: int = 0) -> str:
    """The output of `homing bench speed`."""
    settings = ("--photos", workspace / "photos", "--out", out, "--rounds", 2)
    return homing("bench", "speed", *settings, "--codebook", workspace / "IVF2,PQ4x2.codebook", *more, code=code)


@pytest.fixture(scope="module")
def small(workspace: Path) -> dict:
    """The results of a small network, whose codebook has no distractors."""
    more = ("--batches", "1,4", "--recipes", "paper-fast", "--json")
    return json.loads(bench(workspace, workspace / "small", *more, code=1))


@pytest.fixture(scope="module")
def real(workspace: Path) -> Path:
    """The results of the default network and codebook, on two photos."""
    more = ("--codebook", "homing-1", "--recipes", "paper", "--batches", 2, "--rounds", 1, "--limit", 3)
    (workspace / "output.txt").write_text(bench(workspace, workspace / "real", *more, code=1))
    return workspace / "real"


def test_every_loop_has_a_row_for_every_batch_size(small: dict) -> None:
    loop = small["loop"]
    loop_names = ["plain", "paper", "paper-fast"]  # paper is always measured
    assert [(row["name"], row["batch"]) for row in loop["rows"]] == [
        (loop_name, size) for size in (1, 4) for loop_name in loop_names
    ]
    for row in loop["rows"]:
        assert len(row["rounds"]) == 2 and min(row["rounds"]) > 0
        assert row["ms"] == pytest.approx(sum(row["rounds"]) / 2)  # the median of two
        assert row["memory_mb"] >= 0
    for name, loop_name in (("plain", "plain"), ("homing", "paper")):
        best = min((row for row in loop["rows"] if row["name"] == loop_name), key=lambda row: row["ms"])
        assert (loop[f"{name}_ms"], loop[f"{name}_batch"]) == (best["ms"], best["batch"])
        assert small["memory"][f"{name}_mb"] == best["memory_mb"]
    assert loop["ratio"] == pytest.approx(loop["plain_ms"] / loop["homing_ms"])
    assert (loop["recipe"], small["settings"]["batches"]) == ("paper", [1, 4])


def test_files_are_timed_in_total_and_by_stage(small: dict) -> None:
    for row in small["files"]["rows"]:
        assert len(row["rounds"]) == 2
        assert row["photos_per_second"] == pytest.approx(1000 / row["ms"])
        assert list(row["stages"]) == list(STAGES)
        assert all(ms > 0 for ms in row["stages"].values()), row["stages"]
        assert row["stages"]["loop"] + row["stages"]["write and check"] < sum(row["rounds"])


def test_without_distractors_there_is_no_recall(small: dict) -> None:
    assert small["recall"] == dict.fromkeys(("passive", "plain", "paper", "paper-fast"))
    assert "no recall: codebook 'IVF2,PQ4x2' has no bundled distractors" in small["summary"]
    files = small["files"]
    assert (files["homing_ms"], files["ratio"], files["recipe"]) == (None, None, None)
    assert files["plain_ms"] == files["rows"][0]["ms"]


def test_an_unreadable_photo_is_named_and_left_out(workspace: Path, small: dict) -> None:
    (line,) = small["failures"]
    assert line.startswith(str(workspace / "photos" / "bad.jpg"))
    assert small["settings"]["photos"] == len(PHOTOS)
    assert small["settings"]["megapixels"] == pytest.approx(144 * 108 / 1e6, abs=1e-3)
    assert not list((workspace / "small").glob(".*"))  # temporary copies and collections are removed


def test_recall_is_measured_on_the_files_of_each_loop(real: Path) -> None:
    output = json.loads((real / "results.json").read_text())
    assert output["settings"]["distractors"] == 118_287
    assert list(output["recall"]) == ["passive", "plain", "paper"]
    copies = 2 * len(PAPER)
    assert all((share * copies) == pytest.approx(round(share * copies)) for share in output["recall"].values())
    assert output["recall"]["plain"] >= output["recall"]["passive"] > 0
    vouched = output["recall"]["paper"] >= output["recall"]["plain"]
    assert output["files"]["recipe"] == ("paper" if vouched else None)
    if vouched:
        assert output["files"]["ratio"] == pytest.approx(output["files"]["plain_ms"] / output["files"]["homing_ms"])


def test_tables_and_figure(workspace: Path, real: Path) -> None:
    output, numbers = (workspace / "output.txt").read_text(), json.loads((real / "results.json").read_text())
    for row in numbers["files"]["rows"]:
        assert f"{row['ms']:.1f}" in output and f"{row['ms']:.1f}" in (real / "files.md").read_text()
    assert "plain loop" in output and "homing, recipe paper" in output
    assert "2 photos of 0.02 megapixels" in output
    figure = (real / "stages.svg").read_text()
    assert all(stage in figure for stage in STAGES)
    assert (real / "report.html").is_file() and (real / "loop.tex").is_file()


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (("--recipes", "papper"), "unknown recipe 'papper'; did you mean 'paper'?"),
        (("--recipes", "passive"), "unknown recipe 'passive'"),
        (("--batches", "8,0"), "--batches takes a value of at least 1, got 0"),
        (("--batches", "8,x"), "--batches takes comma-separated whole numbers, got 'x'"),
        (("--batches", "-1"), "--batches takes a value of at least 1, got -1"),
        (("--photos", "{workspace}/nowhere"), "no such file or folder"),
        (("--photos", "{workspace}/bad"), "none of the 1 photos can be read"),
        (("--out", "{workspace}/photos/out"), "lies inside"),
        (("--codebook", "homing-2"), "did you mean 'homing-1'"),
        (("--codebook", "{workspace}/Flat.codebook"), "photos cannot be activated for spec 'Flat'"),
    ],
)
def test_a_wrong_call_gets_one_line(
    workspace: Path, tmp_path: Path, more: tuple, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homing.bench.benches.speed.time_loops", lambda *_, **__: pytest.fail("began"))
    with pytest.raises(HomingError) as raised:
        bench(workspace, tmp_path / "out", *(str(each).format(workspace=workspace) for each in more))
    assert line in str(raised.value) and "\n" not in str(raised.value)


def test_the_defaults_are_the_demos_photos_and_the_default_codebook(tmp_path: Path) -> None:
    setting = SpeedSettings(out=tmp_path)
    assert setting.photos is None
    assert [loop_name.name for loop_name in setting.loop_configs] == ["plain", "paper", "homing-fast", "homing"]


def test_the_demos_photos_are_jpeg_files(tmp_path: Path) -> None:
    pixels, failures = copy_photos(demo_jpegs(tmp_path / "demo"), None, tmp_path / "photos")
    loaded = [Photo.load(file) for file in sorted((tmp_path / "photos").iterdir())]
    assert [photo.format for photo in loaded] == 12 * ["JPEG"]
    assert [photo.stored_pixels.shape[0] * photo.stored_pixels.shape[1] for photo in loaded] == pixels
    assert not failures
