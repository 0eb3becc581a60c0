"""The analysis bench on the command line, compared with FAISS and NumPy."""

import csv
import json
from pathlib import Path
from statistics import fmean

import faiss
import numpy as np
import pytest
from tests.bench.helpers import describe_file, homing, small_network, small_photos
from tests.conftest import descriptors, train

from homing import extractors
from homing.bench.benches.analysis import UNRELATED_PAIRS, unrelated_distances
from homing.bench.data import DescriptorSet
from homing.codebooks import Codebook
from homing.edits import PAPER
from homing.errors import HomingError

pytestmark = pytest.mark.slow

PHOTOS, DISTRACTORS = 5, 40
RECIPES = ("passive", "paper-fast")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos, distractors, and two codebooks of a small network: with cells and without."""
    folder = tmp_path_factory.mktemp("workspace")
    small_photos(folder / "photos", [f"p{number}" for number in range(PHOTOS)], seed=1)
    others = small_photos(folder / "others", [f"o{number}" for number in range(10)], seed=2)
    network = small_network(folder)
    for name, spec in (("cells", "IVF4,PQ4x4"), ("flat", "PQ4x4")):
        train = ["codebook", "train", others, "--extractor", network, "--descriptors", 300]
        homing(*train, "--spec", spec, "--out", folder / f"{name}.codebook")
    return folder


def bench(workspace: Path, *more: object) -> str:
    where = ["--photos", workspace / "photos", "--distractor-photos", workspace / "others"]
    where += ["--distractors", DISTRACTORS]
    return homing("bench", "analysis", *where, *more)


@pytest.fixture(scope="module")
def out(workspace: Path) -> Path:
    """The results of one bench."""
    output = bench(
        workspace, "--codebook", workspace / "cells.codebook", "--recipes", "paper-fast", "--out", workspace / "out"
    )
    (workspace / "output.txt").write_text(output)
    return workspace / "out"


@pytest.fixture(scope="module")
def results(out: Path) -> dict:
    return json.loads((out / "results.json").read_text())


@pytest.fixture(scope="module")
def copies(workspace: Path, out: Path) -> dict[str, np.ndarray]:
    """Descriptors (P, E, D) of the copies of each recipe, computed independently."""
    network = extractors.load(str(workspace / "small.pt"), device="cpu")
    names = sorted(path.name for path in (workspace / "photos").iterdir())
    folders = {"passive": workspace / "photos", "paper-fast": out / "released" / "cells" / "paper-fast"}
    return {
        recipe: np.stack([describe_file(network, folder / name, PAPER, seed) for seed, name in enumerate(names)])
        for recipe, folder in folders.items()
    }


@pytest.fixture(scope="module")
def index(workspace: Path, out: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cell centroids, and reconstructions and cells of all references, photos first, computed with FAISS alone."""
    network = extractors.load(str(workspace / "small.pt"), device="cpu")
    photos = np.concatenate([describe_file(network, path) for path in sorted((workspace / "photos").iterdir())])
    (distractors,) = (np.load(path) for path in out.glob("descriptors-*.npy"))
    store = Codebook.read(workspace / "cells.codebook").new_faiss()
    store.make_direct_map()
    store.add(np.concatenate([photos, distractors.astype(np.float32)]))
    centroids = faiss.downcast_index(store.quantizer).reconstruct_n(0, store.nlist)
    stored = np.stack([store.reconstruct(number) for number in range(store.ntotal)])
    cells = np.array([store.direct_map.get(number) >> 32 for number in range(store.ntotal)])
    return centroids, stored, cells


def distances(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.square(first[:, None].astype(float) - second[None]).sum(axis=2)


def lines(out: Path, recipe: str) -> list[dict[str, str]]:
    with (out / "queries.csv").open() as file:
        return [line for line in csv.DictReader(file) if line["recipe"] == recipe]


@pytest.mark.parametrize("recipe", RECIPES)
def test_distances_and_ranks_of_copies_equal_those_of_faiss(out: Path, copies, index, recipe: str) -> None:
    centroids, stored, cells = index
    queries = copies[recipe].reshape(-1, copies[recipe].shape[2])
    own = np.arange(PHOTOS).repeat(len(PAPER))
    to_stored, cell = distances(queries, stored), distances(queries, centroids).argmin(axis=1)
    searches = lines(out, recipe)
    assert [line["edit"] for line in searches] == PHOTOS * [edit.label for edit in PAPER]
    assert [line["photo"] for line in searches] == [f"p{number}.jpg" for number in own]
    for query, line in enumerate(searches):
        mine = to_stored[query, own[query]]
        assert float(line["squared_distance"]) == pytest.approx(mine, abs=1e-4)
        assert int(line["same_cell"]) == (cell[query] == cells[own[query]])
        seen = np.flatnonzero(cells == cell[query])  # the references that one probe compares
        nearer = int((to_stored[query, seen] < mine - 1e-4).sum())
        ties = int((abs(to_stored[query, seen] - mine) <= 1e-4).sum())
        if own[query] in seen:
            assert nearer + 1 <= int(line["rank"]) <= nearer + ties
        else:
            assert line["rank"] == ""


@pytest.mark.parametrize("recipe", RECIPES)
def test_rows_are_means_over_the_copies(out: Path, results: dict, index, recipe: str) -> None:
    (row,) = (row for row in results["rows"] if row["recipe"] == recipe)
    searches = lines(out, recipe)
    squared = [float(line["squared_distance"]) for line in searches]
    assert row["edited"] == pytest.approx([np.mean(squared), np.std(squared)], abs=1e-4)
    released = [float(line["squared_distance"]) for line in searches if line["edit"] == "identity"]
    assert row["released"] == pytest.approx([np.mean(released), np.std(released)], abs=1e-4)
    (distractors,) = (np.load(path) for path in out.glob("descriptors-*.npy"))
    unrelated = distances(distractors, index[1][:PHOTOS])  # all pairs, as they are few
    assert row["unrelated"] == pytest.approx([unrelated.mean(), unrelated.std()], abs=1e-4)
    for edit in PAPER:
        mine = [line for line in searches if line["edit"] == edit.label]
        assert row["failure"][edit.label] == pytest.approx(fmean(1 - int(line["same_cell"]) for line in mine))
        assert row["recall"][edit.label] == pytest.approx(fmean(line["rank"] == "1" for line in mine))
        assert row["recall"][edit.label] <= 1 - row["failure"][edit.label] + 1e-9
        for share, interval in (("failure", "failure_interval"), ("recall", "interval")):
            low, high = row[interval][edit.label]
            assert low <= row[share][edit.label] <= high
            assert (low < high) == (0 < row[share][edit.label] < 1)
        assert row["distance"][edit.label] == pytest.approx(
            fmean(float(line["squared_distance"]) for line in mine), abs=1e-4
        )
    assert row["recall_within_bound"] is True
    assert 0 < sum(row["failure"].values()) < len(PAPER)


def test_passive_is_always_measured_and_activated_copies_are_nearer(results: dict) -> None:
    passive, activated = results["rows"]
    assert [row["recipe"] for row in results["rows"]] == list(RECIPES)
    assert activated["released"][0] < passive["released"][0]
    assert results["settings"]["unrelated_pairs"] == PHOTOS * DISTRACTORS
    assert results["settings"]["distances"] == "squared"


def test_activating_photos_does_not_change_results_for_others(out: Path, results: dict, copies, index) -> None:
    centroids, stored, cells = index
    (check,) = results["compatibility"]
    assert (check["recipe"], check["photos"], check["activated"]) == ("paper-fast", PHOTOS, 2)
    assert check["copies"] == 3 * len(PAPER)
    assert check["equal"] is True
    queries = copies["passive"][2:].reshape(-1, copies["passive"].shape[2])
    cell = distances(queries, centroids).argmin(axis=1)
    hidden = np.where(cells[None, :PHOTOS] == cell[:, None], distances(queries, stored[:PHOTOS]), np.inf)
    correct = (hidden.argmin(axis=1) == np.arange(2, PHOTOS).repeat(len(PAPER))) & np.isfinite(hidden.min(axis=1))
    assert check["before"] == check["after"] == pytest.approx(correct.mean())
    assert not list(out.glob(".compatibility-*"))


def test_the_report_describes_the_results(workspace: Path, out: Path, results: dict) -> None:
    page = (out / "report.html").read_text()
    assert "no copy was found in another cell" in page
    for name in ("distances", "cells", "compatibility"):
        assert (out / f"{name}.md").is_file()
    for name in ("distances", "cells"):
        assert (out / f"{name}.svg").is_file()
    assert "0.87" in (out / "cells.md").read_text()  # the paper's p_f
    output = (workspace / "output.txt").read_text()
    assert f"{results['rows'][1]['released'][0]:.3f}" in output
    assert "other photos: same results" in output


def test_an_index_without_cells_has_no_failure_rate(workspace: Path) -> None:
    books = ["--codebook", workspace / "flat.codebook", "--codebook", workspace / "cells.codebook"]
    output = json.loads(
        bench(workspace, *books, "--recipes", "passive", "--limit", 2, "--out", workspace / "flat-out", "--json")
    )
    assert [(row["failure"] is None, row["recall_within_bound"]) for row in output["rows"]] == [
        (True, None),
        (False, True),
    ]
    assert output["compatibility"] == []
    assert "flat: an index without cells has no p_f" in (workspace / "flat-out" / "cells.md").read_text()
    assert {line["same_cell"] for line in lines(workspace / "flat-out", "passive")} >= {""}
    assert (workspace / "flat-out" / "distances-2.svg").is_file()


def test_sign_codes_count_bits_and_flat_indexes_stay_passive(workspace: Path, tmp_path: Path) -> None:
    """In other benches too: a Flat index does not support activation."""
    books = []
    for name, spec in (("signs", "PCA16,LSH"), ("whole", "Flat")):
        books += ["--codebook", tmp_path / f"{name}.codebook"]
        train = ["codebook", "train", workspace / "others", "--extractor", workspace / "small.pt", "--descriptors", 300]
        homing(*train, "--spec", spec, "--out", books[-1])
    few = [*books, "--recipes", "paper-fast", "--limit", 2, "--json"]
    output = json.loads(bench(workspace, *few, "--out", tmp_path / "analysis"))
    assert [(row["codebook"], row["recipe"]) for row in output["rows"]] == [
        ("signs", "passive"), ("signs", "paper-fast"), ("whole", "passive"),
    ]  # fmt: skip
    network, book = extractors.load(str(workspace / "small.pt"), device="cpu"), Codebook.read(books[1])
    searches = lines(tmp_path / "analysis", "passive")
    for seed in range(2):
        file = workspace / "photos" / f"p{seed}.jpg"
        code, *copies = book.quantizer.encode(
            np.concatenate([describe_file(network, file), describe_file(network, file, PAPER, seed)])
        )
        for line, copy in zip(searches[seed * len(PAPER) :], copies, strict=False):
            assert float(line["squared_distance"]) == pytest.approx(np.unpackbits(code ^ copy).sum(), abs=1e-3)
    where = ["--photos", workspace / "photos", "--distractor-photos", workspace / "others"]
    where += ["--distractors", DISTRACTORS]
    gentle = ["--psnrs", 40, "--budgets", "jnd", "--out", tmp_path / "quality"]
    rows = json.loads(homing("bench", "quality", *where, *few, *gentle))["rows"]
    assert [row["recipe"] for row in rows if row["codebook"] == "whole"] == ["passive"]
    passive = rows[0]["distance"][0]
    assert passive == pytest.approx(0)  # unedited, no bit differs
    rows = json.loads(homing("bench", "edits", *where, *few, "--families", "jpeg", "--out", tmp_path / "edits"))["rows"]
    assert {row["recipe"] for row in rows if row["codebook"] == "whole"} == {"passive"}


def test_unrelated_pairs_are_drawn_without_replacement() -> None:
    rng = np.random.default_rng(0)
    originals, rows = rng.random((150, 3)).astype(np.float32), rng.random((200, 3)).astype(np.float16)
    book, distractors = train("Flat", dim=3), DescriptorSet(rows, 200, [])
    sampled = unrelated_distances(book, originals, distractors)
    assert len(sampled) == UNRELATED_PAIRS
    np.testing.assert_array_equal(sampled, unrelated_distances(book, originals, distractors))
    assert sampled.mean() == pytest.approx(distances(rows, originals).mean(), rel=0.03)
    few = unrelated_distances(book, originals[:2], DescriptorSet(rows[:3], 3, []))
    assert sorted(few) == pytest.approx(sorted(distances(rows[:3], originals[:2]).ravel()), abs=1e-4)


def test_distances_to_distractors_known_by_code_only_are_to_their_codes() -> None:
    book = train("PQ4x4", dim=8)
    originals, others = (descriptors(count, seed=count, dim=8) for count in (5, 7))
    codes = book.encode(others)
    known = DescriptorSet(book.decode(codes).numpy(), 7, [], codes)
    expected = np.square(originals.numpy()[:, None] - book.decode(codes).numpy()[None]).sum(axis=2)
    assert sorted(unrelated_distances(book, originals.numpy(), known)) == pytest.approx(sorted(expected.ravel()))


def test_an_unknown_recipe_is_refused(workspace: Path) -> None:
    with pytest.raises(HomingError, match="unknown recipe 'papper'; did you mean 'paper'"):
        bench(workspace, "--recipes", "papper", "--out", workspace / "never")
