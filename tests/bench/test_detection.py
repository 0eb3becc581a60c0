"""The detection bench on the command line."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.bench.helpers import homing, skimage_photos

from homing.bench.benches.detection import DetectionSettings
from homing.bench.scores import PrecisionRecall, published_detection
from homing.edits import parse
from homing.errors import HomingError
from homing.extractors import Extractor, describe_images
from homing.imaging import to_image, to_pixels
from homing.photo import Photo

pytestmark = pytest.mark.slow

DISTRACTORS = ("astronaut.png", "horse.png", "brick.png", "page.png")
NEGATIVES = ("coffee.png", "coins.png", "moon.png")
COUNT = 30
EDITS = ("random", "crop-0.5")
RATES = (0.5, 0.01)


@pytest.fixture(scope="module")
def distractors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return skimage_photos(tmp_path_factory.mktemp("distractors"), DISTRACTORS)


@pytest.fixture(scope="module")
def negatives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos that are no references, and one that cannot be read."""
    folder = skimage_photos(tmp_path_factory.mktemp("negatives"), NEGATIVES)
    (folder / "bad.jpg").write_text("hello")
    return folder


def bench(photos: Path, negatives: Path, distractors: Path, out: Path, *more: object) -> str:
    """The output of `homing bench detection`; the exit code is 1, as one of the negatives is unreadable."""
    where = ["--photos", photos, "--negatives", negatives, "--distractor-photos", distractors, "--out", out]
    return homing("bench", "detection", *where, "--distractors", COUNT, *more, code=1)


SETTINGS = (
    *("--probes", "1, exact", "--recipes", "passive, paper-fast"),
    *("--edits", "random, crop-0.5, random", "--max-false-match", "0.5, 0.01, 5e-1"),
)


@pytest.fixture(scope="module")
def out(photos: Path, negatives: Path, distractors: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one bench."""
    folder = tmp_path_factory.mktemp("bench") / "out"
    (folder.parent / "output.txt").write_text(bench(photos, negatives, distractors, folder, *SETTINGS))
    return folder


def read_results(out: Path) -> dict:
    return json.loads((out / "results.json").read_text())


def lines_of(out: Path, row: dict) -> list[dict[str, str]]:
    """The rows of queries.csv for a row of the results."""
    with (out / "queries.csv").open() as file:
        return [
            line
            for line in csv.DictReader(file)
            if (line["codebook"], line["recipe"], line["probes"])
            == (row["codebook"], row["recipe"], str(row["probes"]))
        ]


def test_results_describe_the_measurement(out: Path, codebook) -> None:
    results = read_results(out)
    assert [(row["probes"], row["recipe"]) for row in results["rows"]] == [
        (probes, recipe) for probes in (1, "exact") for recipe in ("passive", "paper-fast")
    ]
    for row in results["rows"]:
        assert (row["codebook"], row["extractor"], row["spec"]) == (codebook.name, codebook.extractor, codebook.spec)
        assert (row["positives"], row["negatives"]) == (4 * len(EDITS), len(NEGATIVES) * len(EDITS))
        assert (row["psnr"] is not None and row["psnr"] >= 43.8) == (row["recipe"] != "passive")
        low, high = row["interval"]
        assert 0 <= low <= row["average_precision"] <= high <= 1
        assert [point["rate"] for point in row["recall_at_false_matches"]] == list(RATES)
    settings = results["settings"]
    assert (settings["photos"], settings["negatives"], settings["edits"]) == (4, len(NEGATIVES), list(EDITS))
    assert settings["distractors"] == {"photos": len(DISTRACTORS), "descriptors": COUNT, "bundled": False}
    assert results["codebooks"]["homing-1"]["fingerprint"] == codebook.fingerprint
    assert results["seconds"] > 0
    (failure,) = results["failures"]
    assert "bad.jpg" in failure


def test_the_summary_is_one_line(out: Path) -> None:
    line = read_results(out)["summary"]
    assert "8 positive and 6 negative queries" in line
    assert f"{4 + COUNT} references, {COUNT} of them distractors, from {len(DISTRACTORS)} distinct photos" in line
    assert line in (out.parent / "output.txt").read_text()
    assert line in (out / "table.md").read_text()


def test_every_search_has_a_csv_row(out: Path, photos: Path) -> None:
    names = {path.name for path in photos.iterdir()}
    for row in read_results(out)["rows"]:
        lines = lines_of(out, row)
        positives = [line for line in lines if line["kind"] == "positive"]
        assert {(line["photo"], line["edit"]) for line in positives} == {
            (name, edit) for name in names for edit in EDITS
        }
        others = [line for line in lines if line["kind"] == "negative"]
        assert {(line["photo"], line["edit"]) for line in others} == {
            (name, edit) for name in NEGATIVES for edit in EDITS
        }
        assert len(lines) == row["positives"] + row["negatives"]
        assert {line["found"] for line in lines} <= {"", *names}
        for line in lines:
            assert int(line["is_correct"]) == (line["found"] == line["photo"])
            assert line["distance"] or not line["found"]


def test_csv_rows_add_up_to_the_recall(out: Path) -> None:
    missed = 0
    for row in read_results(out)["rows"]:
        near = [
            (float(line["distance"] or "inf"), line["kind"], int(line["is_correct"])) for line in lines_of(out, row)
        ]
        false = sorted(distance for distance, kind, _ in near if kind == "negative")
        for point in row["recall_at_false_matches"]:
            threshold = false[int(point["rate"] * len(false))]
            correct = [correct and distance < threshold for distance, kind, correct in near if kind == "positive"]
            assert point["recall"] == pytest.approx(sum(correct) / len(correct))
            assert point["interval"][0] <= point["recall"] <= point["interval"][1]
            if threshold == float("inf"):
                assert point["threshold"] is None
            else:
                assert point["threshold"] == pytest.approx(threshold, abs=1e-5)
            missed += len(correct) - sum(correct)
    assert missed  # otherwise the sums are trivial


def test_the_area_under_the_curve_is_the_average_precision(out: Path) -> None:
    results = read_results(out)
    for row, curve in zip(results["rows"], results["curve"], strict=True):
        assert (row["recipe"], row["probes"]) == (curve["recipe"], curve["probes"])
        grown = np.diff(curve["recall"], prepend=0)
        assert float(np.array(curve["precision"]) @ grown) == pytest.approx(row["average_precision"], abs=1e-4)
        assert curve["threshold"] == sorted(curve["threshold"])


def test_the_table_has_headings_and_intervals(out: Path) -> None:
    _, _, headings, _, *rows = (out / "table.md").read_text().splitlines()
    assert all(
        heading in headings
        for heading in ("µAP (95 % interval)", "recall at 50 % false matches", "recall at 1 % false matches", "gain")
    )
    assert "published" not in headings  # the paper has no figures for these edits
    printed = (out.parent / "output.txt").read_text()
    for row, line in zip(read_results(out)["rows"], rows, strict=True):
        assert f"| {row['probes']} | {row['recipe']} | {row['average_precision']:.3f} (" in line
        assert ("none" in line) == (row["probes"] == "exact")
        assert f"{row['average_precision']:.3f}" in printed
    assert "<svg" in (out / "precision-recall.svg").read_text()
    assert "passive, 1 probe" in (out / "report.html").read_text()


def test_negatives_have_their_own_seeds(out: Path, negatives: Path, extractor: Extractor) -> None:
    cached = [np.load(file) for file in out.glob("copies-*.npy")]
    (rows,) = (each for each in cached if len(each) == len(NEGATIVES))
    assert sorted(len(each) for each in cached) == [len(NEGATIVES), 4, 4]
    for number, name in enumerate(sorted(("bad.jpg", *NEGATIVES))):
        if name != "bad.jpg":  # it has a seed too, since it may be readable later
            image = to_image(Photo.load(negatives / name).pixels())
            images = [extractor.resize(to_pixels(parse(edit)(image, 4 + number))) for edit in EDITS]
            expected = describe_images(extractor, images).numpy()
            np.testing.assert_allclose(rows[sorted(NEGATIVES).index(name)], expected, atol=1e-4)


def test_identity_copies_are_all_found_and_nothing_is_described_twice(
    out: Path, photos: Path, negatives: Path, distractors: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    shutil.copytree(out, again)
    settings = ("--probes", "exact", "--recipes", "passive", "--edits", "identity", "--json")
    (row,) = json.loads(bench(photos, negatives, distractors, again, *settings))["rows"]
    assert (row["average_precision"], row["interval"]) == (1, [1, 1])
    assert [point["recall"] for point in row["recall_at_false_matches"]] == [1, 1]
    assert [point["rate"] for point in row["recall_at_false_matches"]] == [0.01, 0.001]
    # Descriptors and releases are cached in these files.
    notes = {file: file.stat().st_mtime_ns for name in ("copies-*", "descriptors-*") for file in again.glob(name)}
    assert len(notes) == 2 * (3 + 2 + 1)
    assert (
        json.loads(bench(photos, negatives, distractors, again, *SETTINGS, "--json"))["rows"]
        == read_results(out)["rows"]
    )
    assert {
        file: file.stat().st_mtime_ns for name in ("copies-*", "descriptors-*") for file in again.glob(name)
    } == notes


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--edits", "random,croop-0.5"], "unknown edit 'croop'; did you mean 'crop'?"),
        (["--edits", "crop-2"], "edit 'crop' takes a strength from"),
        (["--edits", ""], "unknown edit ''"),
        (
            ["--max-false-match", "0.01,often"],
            "--max-false-match takes comma-separated numbers from 0 to 1, got 'often'",
        ),
        (["--max-false-match", "1.5"], "from 0 to 1, got 1.5"),
        (["--max-false-match", "-0.1"], "from 0 to 1, got -0.1"),
        (["--max-false-match", "nan"], "from 0 to 1, got nan"),
        (["--max-false-match", "0.01,"], "from 0 to 1, got ''"),
        (["--probes", "0"], "--probes takes comma-separated whole numbers from 1, or exact, got 0"),
        (["--recipes", "papper"], "unknown recipe 'papper'; did you mean 'paper'?"),
        (["--negatives", "{tmp}/empty"], "no photos in folder"),
        (["--negatives", "{tmp}/missing"], "no such file or folder"),
        (["--negatives", "{photos}"], "among the negatives and among the photos; a negative cannot be a reference"),
        (
            ["--negatives", "{distractors}"],
            "among the negatives and among the distractors; a negative cannot be a reference",
        ),
        (["--negatives", "{tmp}/linked"], "linked/other.png is among the negatives and among the photos"),
        (["--negatives", "{tmp}"], "lies inside"),
    ],
)
def test_a_wrong_call_gets_one_line(
    photos: Path, negatives: Path, distractors: Path, tmp_path: Path, more: list[str], line: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "other.png").symlink_to(photos / "camera.png")
    filled = (each.format(tmp=tmp_path, photos=photos, distractors=distractors) for each in more)
    with pytest.raises(HomingError) as raised:
        bench(photos, negatives, distractors, tmp_path / "out", *filled)
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_photos_beyond_the_limit_may_be_negatives(photos: Path, distractors: Path, tmp_path: Path) -> None:
    _, second, *_ = sorted(photos.iterdir())
    (tmp_path / "negatives").mkdir()
    (tmp_path / "negatives" / "bad.jpg").write_text("hello")
    (tmp_path / "negatives" / second.name).symlink_to(second)
    settings = ("--distractors", 3, "--limit", 1, "--recipes", "passive", "--probes", "exact", "--edits", "identity")
    (row,) = json.loads(bench(photos, tmp_path / "negatives", distractors, tmp_path / "out", *settings, "--json"))[
        "rows"
    ]
    assert (row["positives"], row["negatives"], row["average_precision"]) == (1, 1, 1)
    assert [line["photo"] for line in lines_of(tmp_path / "out", row) if line["kind"] == "negative"] == [second.name]


def test_negatives_must_include_a_readable_photo(photos: Path, distractors: Path, tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "bad.jpg").write_text("hello")
    with pytest.raises(HomingError, match=r"none of the 1 negatives can be read; the first error: .*bad\.jpg"):
        bench(photos, tmp_path / "bad", distractors, tmp_path / "out", "--distractors", 3)


def test_a_bench_without_edits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HomingError, match=r"--edits takes .*, got none"):
        DetectionSettings(photos=tmp_path, distractor_photos=tmp_path, out=tmp_path, negatives=tmp_path, edits=[])


def test_a_downsampled_curve_keeps_its_shape() -> None:
    recall = np.append(np.linspace(0, 0.6, 5000), np.full(5000, 0.6))  # then only the precision drops, as with cells
    precision = np.append(1 - 0.2 * np.linspace(0, 1, 5000) ** 2, np.linspace(0.8, 0.1, 5000))
    thin = PrecisionRecall(np.arange(10_000.0), precision, recall).downsampled()
    assert 400 < len(thin.thresholds) <= 500
    for end in (0, -1):
        assert (thin.recall[end], thin.precision[end]) == (recall[end], precision[end])
    assert np.abs(np.diff(thin.recall)).max() < 0.005
    assert np.abs(np.diff(thin.precision)).max() < 0.005
    assert np.interp(9000, thin.thresholds, thin.precision) == pytest.approx(precision[9000], abs=0.01)


@pytest.mark.parametrize(
    ("spec", "probes", "recipe", "edits", "expected"),
    [
        ("IVF1024,Flat", 1, "paper", ["random"], "0.43"),
        ("IVF1024,Flat", 1, "passive", ["random"], "0.16"),
        ("IVF1024,Flat", 16, "paper", ["random"], ""),
        ("IVF1024,Flat", "exact", "paper", ["random"], ""),
        ("IVF1024,Flat", 1, "paper", ["random", "meme"], ""),
        ("OPQ8,PQ8x8", 1, "passive", ["random"], "0.48"),
        ("IVF4096,PQ8x8", 1, "paper", ["random"], "×2.0"),
        ("IVF4096,PQ8x8", 1, "passive", ["random"], ""),
        ("IVF4096,PQ8x8", 16, "paper", ["random"], ""),
    ],
)
def test_published_figures_are_shown_for_comparable_rows(spec, probes, recipe, edits, expected) -> None:
    assert published_detection(spec, probes, recipe, edits) == expected
