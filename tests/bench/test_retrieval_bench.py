"""The retrieval bench on the command line."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.bench.helpers import homing, skimage_photos

from homing.bench import data, runs
from homing.bench.data import ReleasedPhoto
from homing.bench.references import search_collection
from homing.collection import Collection
from homing.edits import PAPER

pytestmark = pytest.mark.slow

DISTRACTORS = ("astronaut.png", "coffee.png", "coins.png", "horse.png", "page.png", "brick.png")
COUNT = 40
FOUND = 34  # each of seven files gives six descriptors, the last two five; one of the first is unreadable


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Distractor photos: not among the released ones; one is unreadable."""
    folder = skimage_photos(tmp_path_factory.mktemp("others"), DISTRACTORS)
    (folder / "bad.jpg").write_text("hello")
    return folder


def bench(photos: Path, others: Path, out: Path, *more: object, code: int = 1) -> str:
    """The output of `homing bench retrieval`; the exit code is 1, as one distractor photo is unreadable."""
    return homing(
        "bench", "retrieval", "--photos", photos, "--distractor-photos", others, "--out", out, *more, code=code
    )


@pytest.fixture(scope="module")
def out(photos: Path, others: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one bench."""
    folder = tmp_path_factory.mktemp("bench") / "out"
    settings = ("--distractors", COUNT, "--probes", "1, exact", "--recipes", "passive, paper-fast")
    (folder.parent / "output.txt").write_text(bench(photos, others, folder, *settings))
    return folder


def test_results_describe_the_measurement(out: Path, codebook) -> None:
    output = json.loads((out / "results.json").read_text())
    assert [(row["recipe"], row["probes"]) for row in output["rows"]] == [
        (recipe, probes) for recipe in ("passive", "paper-fast") for probes in (1, "exact")
    ]
    for row in output["rows"]:
        assert (row["codebook"], row["extractor"], row["spec"]) == (codebook.name, codebook.extractor, codebook.spec)
        assert list(row["recall"]) == [edit.label for edit in PAPER]
        assert row["mean"] == pytest.approx(sum(row["recall"].values()) / len(PAPER))
        assert row["recall"]["identity"] == 1
        activated = row["recipe"] != "passive"
        assert (row["psnr"] is not None and row["psnr"] >= 43.8) == activated
        assert row["activated"] == 4 * activated
    assert output["settings"]["photos"] == 4
    assert output["settings"]["distractors"] == {"photos": len(DISTRACTORS), "descriptors": FOUND, "bundled": False}
    assert output["codebooks"]["homing-1"]["fingerprint"] == codebook.fingerprint
    assert set(output["versions"]) == {"homing", "torch", "faiss", "pillow", "python"}
    assert output["hardware"]
    assert len(output["failures"]) == 1
    assert "bad.jpg" in output["failures"][0]


def test_every_search_has_a_csv_row_and_they_add_up(out: Path, photos: Path) -> None:
    with (out / "queries.csv").open() as file:
        lines = list(csv.DictReader(file))
    names = {path.name for path in photos.iterdir()}
    assert len(lines) == 4 * 4 * len(PAPER)
    assert {line["photo"] for line in lines} == names
    assert {line["found"] for line in lines} <= {"", *names}
    for line in lines:
        assert int(line["is_correct"]) == (line["found"] == line["photo"]) == (line["rank"] == "1")
    for row in json.loads((out / "results.json").read_text())["rows"]:
        mine = [line for line in lines if (line["recipe"], line["probes"]) == (row["recipe"], str(row["probes"]))]
        assert row["mean"] == pytest.approx(sum(int(line["is_correct"]) for line in mine) / len(mine))


def test_tables_include_summary_and_published_rows(out: Path) -> None:
    first, _, headings, _, *rows = (out / "table.md").read_text().splitlines()
    assert f"4 photos among {4 + FOUND} references, {FOUND} of them distractors" in first
    assert "6 distinct photos" in first
    assert all(edit.label in headings for edit in PAPER)
    assert ["SSCD" in row for row in rows] == 4 * [False] + 3 * [True]  # published rows of the same recipes and probes
    details = (out / "details.md").read_text()
    assert "| 0.004 | ×0.11 |" in details  # the paper's time for one step, and relative to ten
    printed = (out.parent / "output.txt").read_text()
    for row in json.loads((out / "results.json").read_text())["rows"]:
        assert f"{row['mean']:.3f}" in printed


def test_released_files_are_activated(out: Path, photos: Path) -> None:
    released = out / "released" / "homing-1" / "paper-fast"
    assert {path.name for path in released.iterdir()} == {path.name for path in photos.iterdir()}
    assert all((released / path.name).read_bytes() != path.read_bytes() for path in photos.iterdir())


def test_intervals_ranks_and_cells_are_consistent_with_the_recall(out: Path) -> None:
    for row in json.loads((out / "results.json").read_text())["rows"]:
        for label, share in row["recall"].items():
            low, high = row["interval"][label]
            assert low <= share <= high
            assert (high - low > 0.3) == (0 < share < 1)  # wide for four photos, of no width if all or none are found
            if row["probes"] == 1:
                assert share <= 1 - row["failure"][label] + 1e-9
        assert row["mean_interval"][0] <= row["mean"] <= row["mean_interval"][1]
        assert row["recall_at"]["1"] == pytest.approx(row["mean"])
        assert row["recall_at_interval"]["1"] == row["mean_interval"]
        assert all(low <= row["recall_at"][k] <= high for k, (low, high) in row["recall_at_interval"].items())
        assert row["recall_at"]["1"] <= row["recall_at"]["10"] <= row["recall_at"]["100"]
        assert (row["milliseconds"] is None) == (row["probes"] == "exact")
        assert row["bytes_per_vector"] == (2048 if row["probes"] == "exact" else 8)
    assert row["recall_at"]["100"] == 1  # exact search: there are fewer than 100 references


def measured(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Rows without times, which differ between runs."""
    return [{key: value for key, value in row.items() if key != "milliseconds"} for row in rows]


def test_a_second_run_uses_the_cache(
    out: Path, photos: Path, others: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = tmp_path / "again"
    shutil.copytree(out, again)
    done: list[str] = []

    def count_calls(module: object, name: str) -> None:
        function = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, **k: done.append(name) or function(*a, **k))

    count_calls(runs, "activate_batch")
    count_calls(data, "to_image")  # once for each file that is edited
    settings = ("--probes", "1,exact", "--recipes", "passive,paper-fast", "--json")
    output = json.loads(bench(photos, others, again, "--distractors", COUNT, *settings))
    assert not done
    assert measured(output["rows"]) == measured(json.loads((out / "results.json").read_text())["rows"])
    assert "bad.jpg" in output["failures"][0]
    output = json.loads(bench(photos, others, again, "--distractors", 3, "--limit", 1, *settings))
    assert done == ["to_image", "to_image"]  # another set of files; the released file is used again
    assert len(list(again.glob("descriptors-*.npy"))) == 2
    assert (output["settings"]["photos"], output["settings"]["distractors"]) == (
        1,
        {"photos": 2, "descriptors": 2, "bundled": False},
    )


@pytest.mark.parametrize("stage", ["distractors", "activating", "editing"])
def test_an_interrupted_run_is_resumed(
    out: Path, photos: Path, others: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    module, name = {
        "distractors": (data, "describe_crops"),
        "activating": (runs, "write_atomically"),
        "editing": (data, "edited_copies"),
    }[stage]
    function = getattr(module, name)
    monkeypatch.setattr("homing.extractors.crops.PHOTOS_PER_BATCH", 2)
    monkeypatch.setattr("homing.extractors.base.default_batch_size", lambda _: 14)
    monkeypatch.setattr(data, "default_batch_size", lambda _: 14)
    calls: list[int] = []

    def breaks(*arguments: object, **named: object) -> object:
        """Raise KeyboardInterrupt on the third call, or after the second batch."""
        if name == "write_atomically":
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return function(*arguments, **named)
        return broken(function(*arguments, **named))

    def broken(batches):
        for count, batch in enumerate(batches):
            if count == 2:
                raise KeyboardInterrupt
            yield batch

    settings = ("--distractors", COUNT, "--probes", "1, exact", "--recipes", "passive, paper-fast")
    with monkeypatch.context() as patched:
        patched.setattr(module, name, breaks)
        bench(photos, others, tmp_path, *settings, code=130)
    advanced: list[int] = []
    if name != "write_atomically":
        noted = lambda *a, **k: (advanced.append(1) or each for each in function(*a, **k))  # noqa: E731
        monkeypatch.setattr(module, name, noted)
    bench(photos, others, tmp_path, *settings)
    if stage == "distractors":
        assert len(advanced) == 1  # of three batches of two readable photos
    if stage == "editing":
        assert len(advanced) == 2 + 4  # two of four passive files were left, and all four activated ones
    rows = (json.loads((folder / "results.json").read_text())["rows"] for folder in (out, tmp_path))
    for first, second in zip(*rows, strict=True):
        assert second["recall"] == first["recall"]


def test_an_unreadable_photo_is_named_and_left_out(photos: Path, others: Path, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    shutil.copy(photos / "camera.png", mixed)
    (mixed / "a-bad.png").write_text("good day")
    output = json.loads(
        bench(mixed, others, tmp_path / "out", "--distractors", 3, "--probes", 1, "--recipes", "passive", "--json")
    )
    assert output["settings"]["photos"] == 1
    assert any("a-bad.png" in line for line in output["failures"])


def test_without_distractor_photos_the_bundled_ones_are_searched(photos: Path, extractor, tmp_path: Path) -> None:
    settings = ("--limit", 2, "--recipes", "passive", "--json")
    output = json.loads(
        homing("bench", "retrieval", "--photos", photos, "--out", tmp_path, "--probes", "1,16,exact", *settings)
    )
    assert output["settings"]["distractors"] == {"photos": 118_287, "descriptors": 118_287, "bundled": True}
    assert "118,287 of them distractors bundled with the codebook, compared by their codes" in output["summary"]
    assert output["failures"] == []
    chosen = sorted(photos.iterdir())[:2]
    with Collection.create(tmp_path / "c.homing", with_distractors=True, extractor=extractor) as collection:
        collection.add(chosen)
        files = [ReleasedPhoto(str(photo), photo, seed) for seed, photo in enumerate(chosen)]
        copies = data.uncached_copies(extractor, files, PAPER, lambda: None)
        correct = {
            probes: search_collection(collection, copies, [str(photo) for photo in chosen], k=1, probes=probes).correct
            for probes in (1, 16)
        }
    one_probe, sixteen_probes, exact = output["rows"]
    for row in (one_probe, sixteen_probes):
        assert list(row["recall"].values()) == correct[row["probes"]].mean(axis=0).tolist()
    assert exact["recall"]["identity"] == 1
    few = ("--distractors", 500, "--probes", 1, *settings)
    output = json.loads(homing("bench", "retrieval", "--photos", photos, "--out", tmp_path, *few))
    assert output["settings"]["distractors"] == {"photos": 500, "descriptors": 500, "bundled": True}


def test_a_bench_trains_its_own_codebook_once(photos: Path, others: Path, tmp_path: Path) -> None:
    settings = ("--distractors", 20, "--probes", 1, "--recipes", "passive", "--json")
    train_photos = tmp_path / "training"
    train_photos.mkdir()
    for name in DISTRACTORS:
        with Image.open(others / name) as image:
            image.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(train_photos / name)
    (train_photos / "bad.jpg").write_text("good day")
    index = ("--index", "IVF4,PQ8x8", "--train-photos", train_photos, "--descriptors", 300)
    times = []
    for _ in range(2):
        output = json.loads(bench(photos, others, tmp_path / "out", *index, *settings))
        (row,) = output["rows"]
        assert (row["codebook"], row["spec"], row["extractor"]) == ("IVF4,PQ8x8", "IVF4,PQ8x8", "homing-1")
        (file,) = (tmp_path / "out").glob("codebook-*.codebook")
        times.append(file.stat().st_mtime_ns)
        assert [str(train_photos) in line for line in output["failures"]] == [False, True]
    assert times[0] == times[1]
    # A .npy file of descriptors serves as distractors and as training photos.
    (features,) = (tmp_path / "out").glob("descriptors-*.npy")
    output = json.loads(bench(photos, features, tmp_path / "out", *index, *settings))
    assert output["rows"][0]["recall"] == row["recall"]
    assert output["settings"]["distractors"] == {"photos": len(DISTRACTORS), "descriptors": 17, "bundled": False}
    many = np.tile(np.load(features)[:17], (20, 1)).astype(np.float32)
    np.save(tmp_path / "many.npy", many + np.random.default_rng(0).normal(0, 0.005, many.shape))
    index = ("--index", "IVF4,PQ8x8", "--train-photos", tmp_path / "many.npy")
    output = json.loads(bench(photos, features, tmp_path / "other", *index, *settings, code=1))
    assert output["rows"][0]["recall"]["identity"] == 1
