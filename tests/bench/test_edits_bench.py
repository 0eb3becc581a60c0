"""The edits bench on the command line."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from tests.bench.helpers import homing, skimage_photos

from homing.bench import data
from homing.bench.scores import recall_intervals
from homing.edits import SWEEPS, parse
from homing.errors import HomingError
from homing.extractors import describe_images
from homing.imaging import to_image, to_pixels
from homing.photo import Photo

pytestmark = pytest.mark.slow

DISTRACTORS = ("astronaut.png", "coffee.png", "coins.png")
COUNT = 9
RECIPES = ("passive", "paper-fast")
SETTINGS = ("--distractors", COUNT, "--recipes", ",".join(RECIPES), "--probes", "1,exact", "--limit", 2)


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Distractor photos: not among the released ones."""
    return skimage_photos(tmp_path_factory.mktemp("others"), DISTRACTORS)


def bench(photos: Path, others: Path, out: Path, *more: object) -> str:
    """The output of `homing bench edits`."""
    return homing("bench", "edits", "--photos", photos, "--distractor-photos", others, "--out", out, *more)


@pytest.fixture(scope="module")
def out(photos: Path, others: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one bench."""
    folder = tmp_path_factory.mktemp("edits") / "out"
    (folder.parent / "output.txt").write_text(bench(photos, others, folder, *SETTINGS, "--families", "crop, hue"))
    return folder


@pytest.fixture(scope="module")
def rows(out: Path) -> list[dict]:
    return json.loads((out / "results.json").read_text())["rows"]


@pytest.fixture(scope="module")
def lines(out: Path) -> list[dict[str, str]]:
    """The rows of queries.csv."""
    with (out / "queries.csv").open() as file:
        return list(csv.DictReader(file))


def test_every_strength_has_a_recall(rows: list, lines: list) -> None:
    wanted = [
        (recipe, probes, edit.label)
        for recipe in RECIPES
        for family in ("crop", "hue")
        for probes in (1, "exact")
        for edit in SWEEPS[family]
    ]
    assert [(row["recipe"], row["probes"], row["edit"]) for row in rows] == wanted
    assert len(lines) == 2 * len(wanted)
    for row in rows:
        mine = [
            int(line["is_correct"])
            for line in lines
            if (line["recipe"], line["probes"], line["edit"]) == (row["recipe"], str(row["probes"]), row["edit"])
        ]
        assert row["recall"] == pytest.approx(sum(mine) / len(mine))
        assert row["interval"] == list(recall_intervals(np.array(mine, bool)[:, None]).mean)
        assert row["edit"] == f"{row['family']}-{row['strength']}"


def test_strengths_without_effect_find_every_file(
    rows: list, lines: list, out: Path, photos: Path, extractor, codebook
) -> None:
    assert all(row["recall"] == 1 for row in rows if row["edit"] in ("crop-1.0", "hue-0.0"))
    for line in lines:
        if (line["recipe"], line["probes"]) != ("paper-fast", "1") or line["edit"] not in ("crop-1.0", "crop-0.7"):
            continue
        original = describe_images(extractor, [Photo.load(photos / line["photo"]).pixels()])
        pixels = Photo.load(out / "released" / "homing-1" / "paper-fast" / line["photo"]).pixels()
        copy = describe_images(extractor, [to_pixels(parse(line["edit"])(to_image(pixels)))])
        if line["is_correct"] == "1":
            distance = float((copy - codebook.reconstruct(original)).norm())
            assert float(line["distance"]) == pytest.approx(distance, abs=1e-3)


def test_each_family_has_a_figure_and_a_table(out: Path, rows: list) -> None:
    first, _, headings, _, *table = (out / "hue.md").read_text().splitlines()
    assert f"2 photos among {2 + COUNT} references" in first
    assert all(f" {number} " in headings for number in ("−0.5", "0", "0.3"))
    assert len(table) == 4
    assert (out / "crop.tex").is_file()
    assert {path.name for path in out.glob("*.svg")} == {"sweeps.svg", "sweeps-2.svg"}
    panels = (out / "sweeps.svg").read_text()
    assert "share of a full turn" in panels
    assert "rotation" not in panels
    mean = sum(row["recall"] for row in rows[: len(SWEEPS["crop"])]) / len(SWEEPS["crop"])
    (crop,) = (line for line in (out.parent / "output.txt").read_text().splitlines() if line.startswith("crop"))
    assert crop.split()[1] == f"{mean:.3f}"


def test_another_run_computes_new_families_only(
    out: Path, photos: Path, others: Path, rows: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited = []
    edit = data.edited_copies

    def counted(extractor, released, edits, **named):
        edited.extend(each.name for _ in released for each in edits)
        return edit(extractor, released, edits, **named)

    monkeypatch.setattr(data, "edited_copies", counted)
    monkeypatch.setattr("homing.bench.runs.activate_batch", lambda *_, **__: pytest.fail("activated again"))
    output = json.loads(bench(photos, others, out, *SETTINGS, "--families", "resize,hue", "--json"))
    assert edited == ["resize"] * len(SWEEPS["resize"]) * 4
    cached_rows = [row for row in output["rows"] if row["family"] == "hue"]
    assert cached_rows == [row for row in rows if row["family"] == "hue"]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--families", "rotatoin"], "unknown family of edits 'rotatoin'; did you mean 'rotation'?"),
        (["--families", ""], "unknown family of edits ''. Available: blur, brightness, contrast, crop"),
        (["--recipes", "papper"], "unknown recipe 'papper'; did you mean 'paper'?"),
        (["--probes", "none"], "--probes takes comma-separated whole numbers from 1, or exact, got 'none'"),
    ],
)
def test_a_wrong_call_gets_one_line(photos: Path, others: Path, tmp_path: Path, more: list[str], line: str) -> None:
    with pytest.raises(HomingError) as raised:
        bench(photos, others, tmp_path / "out", *more)
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists()
