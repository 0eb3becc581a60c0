"""The retrieval bench, as a script would call it."""

import csv
import json
import shutil
from importlib.resources import files
from pathlib import Path

import pytest
from tests.conftest import FakeExtractor, descriptors
from typer.testing import CliRunner

from homing.cli import app
from homing.codebooks import Codebook
from homing.edits import PAPER
from homing.errors import HomingError
from homing.evaluation import strangers
from homing.evaluation.retrieval_bench import RetrievalBench
from homing.extractors.crops import describe_crops

STRANGERS = ("astronaut.png", "coffee.png", "coins.png", "horse.png", "page.png", "brick.png")
COUNT = 40
FOUND = 34  # of seven files each gives six descriptors or, the last two, five; one of the first cannot be read


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos of skimage that no test releases, and one that cannot be read."""
    folder = tmp_path_factory.mktemp("others")
    for name in STRANGERS:
        folder.joinpath(name).write_bytes(files("skimage.data").joinpath(name).read_bytes())
    (folder / "bad.jpg").write_text("hello")
    return folder


def bench(photos: Path, others: Path, out: Path, *more: object, code: int = 1) -> str:
    """What `homing bench retrieval` prints; the exit code is 1 as one background photo is bad."""
    arguments = ["bench", "retrieval", "--photos", photos, "--background", others, "--out", out, *more]
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    if isinstance(done.exception, HomingError):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.stdout


@pytest.fixture(scope="module")
def out(photos: Path, others: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one bench."""
    folder = tmp_path_factory.mktemp("bench") / "out"
    settings = ("--strangers", COUNT, "--probes", "1, exact", "--recipes", "passive, paper-fast")
    (folder.parent / "said.txt").write_text(bench(photos, others, folder, *settings))
    return folder


def test_results_say_what_was_measured(out: Path, codebook) -> None:
    said = json.loads((out / "results.json").read_text())
    assert [(row["recipe"], row["probes"]) for row in said["rows"]] == [
        (recipe, probes) for recipe in ("passive", "paper-fast") for probes in (1, "exact")
    ]
    for row in said["rows"]:
        assert (row["codebook"], row["extractor"], row["spec"]) == (codebook.name, codebook.extractor, codebook.spec)
        assert list(row["recall"]) == [edit.label for edit in PAPER]
        assert row["mean"] == pytest.approx(sum(row["recall"].values()) / len(PAPER))
        assert row["recall"]["identity"] == 1
        activated = row["recipe"] != "passive"
        assert (row["psnr"] is not None and row["psnr"] >= 43.8) == activated
        assert row["activated"] == 4 * activated
    assert said["settings"]["photos"] == 4
    assert said["settings"]["background"] == {"photos": len(STRANGERS), "strangers": FOUND}
    assert said["codebooks"]["homing-1"]["fingerprint"] == codebook.fingerprint
    assert set(said["versions"]) == {"homing", "torch", "faiss", "pillow", "python"}
    assert said["hardware"]
    assert len(said["failures"]) == 1
    assert "bad.jpg" in said["failures"][0]


def test_every_search_is_kept_and_adds_up(out: Path, photos: Path) -> None:
    with (out / "queries.csv").open() as file:
        lines = list(csv.DictReader(file))
    names = {path.name for path in photos.iterdir()}
    assert len(lines) == 4 * 4 * len(PAPER)
    assert {line["photo"] for line in lines} == names
    assert {line["found"] for line in lines} <= {"", *names}
    for line in lines:
        assert int(line["home"]) == (line["found"] == line["photo"])
    for row in json.loads((out / "results.json").read_text())["rows"]:
        mine = [line for line in lines if (line["recipe"], line["probes"]) == (row["recipe"], str(row["probes"]))]
        assert row["mean"] == pytest.approx(sum(int(line["home"]) for line in mine) / len(mine))


def test_the_table_is_for_people(out: Path) -> None:
    first, _, headings, _, *rows = (out / "table.md").read_text().splitlines()
    assert f"4 photos among {4 + FOUND} references, {FOUND} of them strangers" in first
    assert "6 distinct photos" in first
    assert all(edit.label in headings for edit in PAPER)
    assert len(rows) == 4
    shown = (out.parent / "said.txt").read_text()
    for row in json.loads((out / "results.json").read_text())["rows"]:
        assert f"{row['mean']:.3f}" in shown


def test_what_is_searched_for_are_the_files_written(out: Path, photos: Path) -> None:
    released = out / "released" / "homing-1" / "paper-fast"
    assert {path.name for path in released.iterdir()} == {path.name for path in photos.iterdir()}
    assert all((released / path.name).read_bytes() != path.read_bytes() for path in photos.iterdir())


def test_another_run_finds_the_same_and_describes_no_stranger_again(
    out: Path, photos: Path, others: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = tmp_path / "again"
    shutil.copytree(out, again, ignore=shutil.ignore_patterns("released"))
    described = []
    monkeypatch.setattr(
        strangers, "describe_crops", lambda *arguments: described.append(1) or describe_crops(*arguments)
    )
    settings = ("--probes", "1,exact", "--recipes", "passive", "--json")
    said = json.loads(bench(photos, others, again, "--strangers", COUNT, *settings))
    assert not described
    assert said["rows"] == json.loads((out / "results.json").read_text())["rows"][:2]
    assert "bad.jpg" in said["failures"][0]
    assert len(list(again.glob("background-*.npy"))) == 1
    said = json.loads(bench(photos, others, again, "--strangers", 3, "--limit", 1, *settings))
    assert len(described) == 1
    assert len(list(again.glob("background-*.npy"))) == 2
    assert (said["settings"]["photos"], said["settings"]["background"]) == (1, {"photos": 2, "strangers": 2})


def test_a_photo_that_cannot_be_read_is_named_and_left_out(photos: Path, others: Path, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    shutil.copy(photos / "camera.png", mixed)
    (mixed / "a-bad.png").write_text("hello")
    said = json.loads(
        bench(mixed, others, tmp_path / "out", "--strangers", 3, "--probes", 1, "--recipes", "passive", "--json")
    )
    assert said["settings"]["photos"] == 1
    assert any("a-bad.png" in line for line in said["failures"])


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--probes", "foo"], "probes are whole numbers from 1, or 'exact', got 'foo'"),
        (["--probes", "0"], "got 0"),
        (["--probes", "1,-1"], "got '-1'"),
        (["--probes", "1,,16"], "got ''"),
        (["--recipes", "passive,papper"], "unknown recipe 'papper'; did you mean 'paper'?"),
        (["--codebook", "homing-2"], "unknown codebook 'homing-2'; did you mean 'homing-1'?"),
        (["--strangers", "0"], "must be at least 1, got 0"),
        (["--photos", "{tmp}/empty"], "no photos in folder"),
        (["--background", "{tmp}/empty"], "no photos in folder"),
        (["--background", "{tmp}/bad", "--strangers", "5"], "none of the 1 background photos can be read"),
        (["--background", "{photos}"], "cannot be its own stranger"),
        (["--out", "{tmp}/bad/bad.jpg/out"], "cannot write into the out folder"),
        (["--out", "{others}/out"], "lies inside"),
    ],
)
def test_a_wrong_call_gets_one_line(photos: Path, others: Path, tmp_path: Path, more: list[str], line: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "bad.jpg").write_text("hello")
    filled = (each.format(tmp=tmp_path, photos=photos, others=others) for each in more)
    with pytest.raises(HomingError) as raised:
        bench(photos, others, tmp_path / "out", *filled)
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not list(tmp_path.glob("out/.*"))


@pytest.mark.parametrize("name", ["../mine", "a/b", ".."])
def test_a_codebook_whose_name_leads_elsewhere_is_refused(
    photos: Path, others: Path, tmp_path: Path, name: str
) -> None:
    stray = Codebook.train(descriptors(300).numpy(), spec="PQ4x4", extractor=FakeExtractor(), name=name)
    stray.write(tmp_path / "stray.codebook")
    with pytest.raises(HomingError, match="cannot be the name of a folder"):
        bench(photos, others, tmp_path / "out", "--codebook", tmp_path / "stray.codebook")


@pytest.mark.parametrize("probes", [None, True, 1.0, 0, "all"])
def test_probes_are_checked_in_python_too(tmp_path: Path, probes: object) -> None:
    with pytest.raises(HomingError, match="probes are whole numbers from 1"):
        RetrievalBench(photos=tmp_path, background=tmp_path, out=tmp_path, probes=[1, probes])
