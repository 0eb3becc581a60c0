"""The paper bench on a miniature DISC21, on the command line."""

import csv
import json
import re
import shutil
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from tests.bench.helpers import describe_file, homing, small_network, small_photos

from homing import extractors
from homing.bench import data, runs
from homing.bench.benches._disc21 import read_disc21
from homing.codebooks import Codebook
from homing.edits import PAPER
from homing.errors import HomingError

pytestmark = pytest.mark.slow

PARTS = ("retrieval", "detection", "quality", "edits", "analysis")
REFERENCES, TRAIN, NEGATIVES = 14, 16, 4
NAMED = ("R000003", "R000005", "R000011")
TRUTH = (
    "query_id,reference_id\n" + "".join(f"Q0000{number},{name}\n" for number, name in enumerate(NAMED)) + "Q00009,\n"
)
RECIPE = "paper-fast"


@pytest.fixture(scope="module")
def disc21(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small photos with the names of DISC21, a ground truth, and a small network."""
    folder = tmp_path_factory.mktemp("disc") / "DISC21"
    small_photos(folder / "references", [f"R{number:06}" for number in range(REFERENCES)], seed=1)
    small_photos(folder / "train", [f"T{number:06}" for number in range(TRAIN)], seed=2)
    (folder / "dev_ground_truth.csv").write_text(TRUTH)
    small_network(folder.parent)
    return folder


def bench(disc21: Path, out: Path, *more: object) -> str:
    settings = ["--spec", "IVF2,PQ4x4", "--descriptors", 300, "--negatives", NEGATIVES]
    settings += ["--recipes", f"passive,{RECIPE}"]
    network = ["--extractor", disc21.parent / "small.pt"] if (disc21.parent / "small.pt").is_file() else []
    return homing("bench", "paper", disc21, "--out", out, *settings, *network, *more)


@pytest.fixture(scope="module")
def out(disc21: Path) -> Path:
    """The results of one bench, of all parts."""
    folder = disc21.parent / "out"
    (disc21.parent / "output.txt").write_text(bench(disc21, folder, "--probes", "1,exact"))
    return folder


def read_results(folder: Path) -> dict:
    return json.loads((folder / "results.json").read_text())


def test_the_page_links_to_all_parts(disc21: Path, out: Path) -> None:
    page = (out / "report.html").read_text()
    assert set(re.findall(r'<a href="([^"]+)">', page)) == {f"{part}/report.html" for part in PARTS}
    for part in PARTS:
        assert (out / part / "report.html").is_file()
        assert read_results(out / part)["command"] == read_results(out)["command"]
    assert "<a " not in (out / "summary.md").read_text()
    printed = (disc21.parent / "output.txt").read_text()
    assert all(row["ours"] in printed for row in read_results(out)["rows"])


def test_every_photo_has_one_role(out: Path) -> None:
    settings = read_results(out)["settings"]
    assert (settings["photos"], settings["references"]) == (len(NAMED), REFERENCES)
    assert (settings["train_photos"], settings["descriptors"]) == (TRAIN - NEGATIVES, 300)
    for part in PARTS:
        assert read_results(out / part)["settings"]["photos"] == len(NAMED)
        assert read_results(out / part)["settings"]["distractors"]["descriptors"] == REFERENCES - len(NAMED)
    with (out / "detection" / "queries.csv").open() as file:
        names = {line["photo"] for line in csv.DictReader(file)}
    assert names == {f"{name}.jpg" for name in (*NAMED, "T000012", "T000013", "T000014", "T000015")}


def test_the_parts_share_descriptors_and_released_files(out: Path) -> None:
    assert len(list((out / "cache").glob("descriptors-*.npy"))) == 2  # of training photos and of references
    released = {path.name for path in (out / "cache" / "released" / "IVF2,PQ4x4").iterdir()}
    assert {RECIPE, f"{RECIPE}-40dB"} <= released
    for part in PARTS:
        assert not list((out / part).glob("released")) + list((out / part).glob("*.npy"))
    for row in read_results(out / "quality")["rows"]:
        assert row["photos"] == len(NAMED)


def test_the_recall_equals_that_of_faiss(disc21: Path, out: Path) -> None:
    network = extractors.load(str(disc21.parent / "small.pt"), device="cpu")
    index = Codebook.read(out / "IVF2,PQ4x4.codebook").new_faiss()
    references = sorted((disc21 / "references").iterdir())
    index.add(np.concatenate([describe_file(network, path) for path in references]))
    folders = {"passive": disc21 / "references", RECIPE: out / "cache" / "released" / "IVF2,PQ4x4" / RECIPE}
    rows = {
        (row["recipe"], row["probes"]): row["ours"] for row in read_results(out)["rows"] if row["part"] == "retrieval"
    }
    for recipe, folder in folders.items():
        correct = []
        for seed, name in enumerate(NAMED):
            _, found = index.search(describe_file(network, folder / f"{name}.jpg", PAPER, seed), 1)
            correct += [references[number].stem == name for number in found[:, 0]]
        assert float(rows[recipe, 1]) == pytest.approx(fmean(correct), abs=0.03)  # ties may be resolved either way


def test_each_number_is_that_of_its_part(out: Path) -> None:
    rows = read_results(out)["rows"]
    recalls = {(row["recipe"], row["probes"]): row["mean"] for row in read_results(out / "retrieval")["rows"]}
    precisions = {
        (row["recipe"], row["probes"]): row["average_precision"] for row in read_results(out / "detection")["rows"]
    }
    for row in rows:
        if row["metric"].startswith("recall at rank 1, mean of the edits"):
            assert row["ours"] == f"{recalls[row['recipe'], row['probes']]:.3f}"
        if row["metric"] == "µAP of the random edit":
            assert row["ours"] == f"{precisions[row['recipe'], row['probes']]:.3f}"
    (exact,) = (row for row in rows if (row["part"], row["recipe"], row["probes"]) == ("retrieval", "passive", "exact"))
    assert exact["published"] == "0.99"
    failures = {row["recipe"]: row["failure"]["random"] for row in read_results(out / "analysis")["rows"]}
    compared_failures = {row["recipe"]: row["ours"] for row in rows if row["metric"].startswith("p_f")}
    assert compared_failures == {recipe: f"{share:.3f}" for recipe, share in failures.items()}
    assert {row["part"] for row in rows} == set(PARTS)


def test_another_run_uses_the_cache(disc21: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(data, "edited_copies", lambda *arguments, **_: never() if list(arguments[1]) else iter(()))
    monkeypatch.setattr(runs, "activate_batch", never)
    monkeypatch.setattr(Codebook, "train", never)
    monkeypatch.setattr(data, "describe_crops", lambda *given, start: never() if start < len(given[1]) else iter(()))
    before = read_results(out)["rows"]
    again = json.loads(bench(disc21, out, "--probes", "1,exact", "--parts", "retrieval,detection", "--json"))
    assert again["rows"] == [row for row in before if row["part"] in ("retrieval", "detection")]
    assert list(again["parts"]) == ["retrieval", "detection"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dev_queries_groundtruth.csv", TRUTH.partition("\n")[2]),  # as downloaded: without headings
        ("list_files/dev_ground_truth.csv", TRUTH.replace("\n", "\r\n")),
        ("groundtruth_matches.csv", "".join(f"Q1,{name}.jpg\n" for name in NAMED)),
    ],
)
def test_other_layouts_of_disc21_are_read(disc21: Path, tmp_path: Path, name: str, text: str) -> None:
    references, train = sorted((disc21 / "references").iterdir()), sorted((disc21 / "train").iterdir())
    for number, path in enumerate(references + train):
        part = tmp_path / f"{'refs' if path in references else 'train'}_50k_{number % 3}" / "images"
        part.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, part)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    found = read_disc21(tmp_path, positives=10, negatives=2, limit_references=5, limit_train=4)
    assert [photo.path.stem for photo in found.photos] == list(NAMED)
    assert [photo.path.stem for photo in found.others] == [f"R{number:06}" for number in (0, 1, 2, 4, 6)]
    assert [photo.path.stem for photo in found.train_photos] == [f"T{number:06}" for number in range(4)]
    assert [photo.path.stem for photo in found.negatives] == ["T000014", "T000015"]


def test_references_beyond_the_positives_may_be_missing(disc21: Path, tmp_path: Path) -> None:
    shutil.copytree(disc21, tmp_path / "some")
    (tmp_path / "some" / "references" / "R000011.jpg").unlink()
    found = read_disc21(tmp_path / "some", positives=2, negatives=2, limit_references=None, limit_train=None)
    assert [photo.path.stem for photo in found.photos] == list(NAMED[:2])
    assert len(found.others) == REFERENCES - 3


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (lambda disc: shutil.rmtree(disc / "references"), "it has no folder references/"),
        (lambda disc: shutil.rmtree(disc / "train"), "it has no folder train/"),
        (lambda disc: shutil.rmtree(disc), "cannot read the folder"),
        (lambda disc: [path.unlink() for path in (disc / "references").iterdir()], "no photos in folder"),
        (
            lambda disc: (disc / "dev_ground_truth.csv").unlink(),
            "has no ground truth; expected dev_queries_groundtruth",
        ),
        (
            lambda disc: (disc / "references" / "R000005.jpg").unlink(),
            "names R000005, which is not among the references",
        ),
        (
            lambda disc: (disc / "dev_ground_truth.csv").write_text("Q1,R000003\nQ2\n"),
            "line 2: expected query,reference",
        ),
        (
            lambda disc: (disc / "dev_ground_truth.csv").write_text("a,b,c\n"),
            "line 1: expected query,reference, got 'a,b,c'",
        ),
        (lambda disc: (disc / "dev_ground_truth.csv").write_bytes(b"Q1,\xff\xfe\n"), "is not a CSV file"),
        (lambda disc: (disc / "dev_ground_truth.csv").write_text("Q1,\nQ2,\n"), "names no reference"),
        (lambda disc: [path.unlink() for path in (disc / "train").glob("*1?.jpg")], None),
    ],
)
def test_a_folder_that_is_not_disc21_gets_one_line(disc21: Path, tmp_path: Path, spoil, line: str | None) -> None:
    shutil.copytree(disc21, tmp_path / "disc")
    spoil(tmp_path / "disc")
    with pytest.raises(HomingError) as raised:
        bench(tmp_path / "disc", tmp_path / "out", *([] if line else ["--negatives", 10]))
    assert (line or "must be more than the 10 negatives among them") in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--recipes", "passive"], "give a recipe besides 'passive'"),
        (["--recipes", "papper"], "unknown recipe 'papper'"),
        (["--parts", "retrieval,qualty"], "unknown part 'qualty'; did you mean 'quality'?"),
        (["--probes", "0"], "--probes takes comma-separated whole numbers from 1"),
        (["--spec", "IVF2,PQ7x8"], "not a FAISS factory string"),
        (["--spec", "IVF512,PQ4x4"], "IVF512,PQ4x4 needs at least 512 training descriptors, got 300"),
        (["--extractor", "homing-2"], "unknown extractor 'homing-2'"),
        (["--out", "{disc}/references/out"], "lies inside"),
    ],
)
def test_a_wrong_call_gets_one_line(disc21: Path, tmp_path: Path, more: list[str], line: str) -> None:
    with pytest.raises(HomingError) as raised:
        bench(disc21, tmp_path / "out", *(each.format(disc=disc21) for each in more))
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)
