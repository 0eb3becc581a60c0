"""The search bench on the command line, compared with brute force in NumPy."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.bench.helpers import homing, small_network, small_photos
from tests.conftest import train

from homing import extractors
from homing.bench.benches.search import SEARCH_OPTIONS, SearchOption
from homing.codebooks import Codebook
from homing.edits import PAPER
from homing.errors import HomingError
from homing.extractors import describe_images
from homing.photo import Photo

pytestmark = pytest.mark.slow

PHOTOS, DISTRACTORS, CELLS = 3, 300, 8
NAMES = [option.name for option in SEARCH_OPTIONS]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos, descriptors of distractors, and a codebook with few cells for a small network."""
    folder = tmp_path_factory.mktemp("search")
    network = extractors.load(str(small_network(folder)))
    small_photos(folder / "photos", [f"photo{number}" for number in range(PHOTOS)], seed=1)
    small_photos(folder / "others", [f"other{number}" for number in range(30)], seed=2)
    images = [Photo.load(path).pixels() for path in sorted((folder / "others").iterdir())]
    rows = describe_images(network, images).repeat(DISTRACTORS // 30, 1)
    noise = torch.randn(rows.shape, generator=torch.Generator().manual_seed(0))
    distractors = torch.nn.functional.normalize(rows + 0.05 * noise, dim=1).numpy()
    np.save(folder / "distractors.npy", distractors)
    book = Codebook.train(distractors, spec=f"IVF{CELLS},PQ4x4", extractor=network, name="small")
    book.write(folder / "small.codebook")
    return folder


def bench(workspace: Path, *more: object) -> str:
    where = ("--photos", workspace / "photos", "--distractor-photos", workspace / "distractors.npy")
    setting = ("--out", workspace / "out", "--codebook", workspace / "small.codebook", "--recipe", "paper-fast")
    return homing("bench", "search", *where, *setting, *more)


@pytest.fixture(scope="module")
def output(workspace: Path) -> dict:
    """The JSON output of the bench."""
    printed = json.loads(bench(workspace, "--json"))
    assert printed == json.loads((workspace / "out" / "results.json").read_text())
    return printed


def by_numpy(book: Codebook, references: np.ndarray, copy: np.ndarray, option: SearchOption) -> tuple[int, int, int]:
    """The nearest reference of a copy (T, D), and the numbers of codes and descriptors compared."""
    if option.probes == "exact":
        return int(np.linalg.norm(references - copy[0], axis=1).argmin()), 0, len(references)
    reference_cells = book.cells(torch.from_numpy(references)).numpy()
    behind, centers = book.reconstruct(torch.from_numpy(references)).numpy(), book.all_centroids.numpy()
    best: dict[int, float] = {}
    codes = 0
    for query in copy if option.variants else copy[:1]:
        squared = ((centers - query) ** 2).sum(axis=1)
        cells = np.argsort(squared)[: option.probes]
        if option.probe_radius is not None:
            cells = np.flatnonzero(squared <= squared.min() + option.probe_radius)
        for number in np.flatnonzero(np.isin(reference_cells, cells)):
            codes += 1
            best[number] = min(float(np.linalg.norm(behind[number] - query)), best.get(number, np.inf))
    if option.rerank is None:
        return min(best, key=best.__getitem__), codes, 0
    candidates = sorted(best, key=best.__getitem__)[: option.rerank]
    queries = copy if option.variants else copy[:1]
    apart = [min(np.linalg.norm(references[number] - query) for query in queries) for number in candidates]
    return candidates[int(np.argmin(apart))], codes, len(candidates)


def test_results_and_costs_of_every_option_equal_numpy(workspace: Path, output: dict) -> None:
    book, network = Codebook.read(workspace / "small.codebook"), extractors.load(str(workspace / "small.pt"))
    originals = describe_images(
        network, [Photo.load(path).pixels() for path in sorted((workspace / "photos").iterdir())]
    )
    references = np.concatenate([originals.numpy(), np.load(workspace / "distractors.npy")])
    files = sorted((workspace / "out").glob("copies-*.npy"), key=lambda file: file.stat().st_mtime_ns)
    assert [(row["recipe"], row["search"]) for row in output["rows"]] == [
        (recipe, name) for recipe in ("passive", "paper-fast") for name in NAMES
    ]
    for recipe, file in zip(("passive", "paper-fast"), files, strict=True):
        copies = np.load(file)
        assert copies.shape == (PHOTOS, len(PAPER), 5, 108)
        rows = [row for row in output["rows"] if row["recipe"] == recipe]
        for option, row in zip(SEARCH_OPTIONS, rows, strict=True):
            found = np.array([[by_numpy(book, references, copy, option) for copy in row] for row in copies])
            correct = found[..., 0] == np.arange(PHOTOS)[:, None]
            # The order of ties is arbitrary.
            assert row["mean"] == pytest.approx(correct.mean(), abs=1.1 / correct.size), option.name
            assert row["codes"] == pytest.approx(found[..., 1].mean(), abs=0.5), option.name
            assert row["descriptors"] == pytest.approx(found[..., 2].mean(), abs=0.5), option.name
            assert row["passes"] == (5 if option.variants else 1)


def test_rows_have_gain_and_cost_of_each_option(output: dict) -> None:
    for start in range(0, len(output["rows"]), len(SEARCH_OPTIONS)):
        first, *others = output["rows"][start : start + len(SEARCH_OPTIONS)]
        assert (first["search"], first["gain"], first["gain_interval"]) == ("1 probe", 0, [0, 0])
        for row in [first, *others]:
            assert row["mean"] == pytest.approx(sum(row["recall"].values()) / len(PAPER))
            assert row["mean_interval"][0] <= row["mean"] <= row["mean_interval"][1]
            assert row["gain"] == pytest.approx(row["mean"] - first["mean"])
            assert row["gain_interval"][0] - 1e-9 <= row["gain"] <= row["gain_interval"][1] + 1e-9
            assert (row["milliseconds"] is None) == (row["search"] == "exact")
    assert output["settings"]["recipe"] == "paper-fast"
    assert output["failures"] == []


def test_every_search_has_a_csv_row_and_they_add_up(workspace: Path, output: dict) -> None:
    with (workspace / "out" / "queries.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 2 * len(SEARCH_OPTIONS) * PHOTOS * len(PAPER)
    for row in output["rows"]:
        mine = [line for line in lines if (line["recipe"], line["search"]) == (row["recipe"], row["search"])]
        assert row["mean"] == pytest.approx(np.mean([int(line["is_correct"]) for line in mine]))


def test_tables_and_figure(workspace: Path, output: dict) -> None:
    printed = bench(workspace)  # the second run uses the cache
    for row in output["rows"]:
        assert f"{row['mean']:.3f}" in printed
    table, figure = (workspace / "out" / "table.md").read_text(), (workspace / "out" / "search.svg").read_text()
    assert all(name in table for name in NAMES)
    assert all(f">{name}<" in figure for name in NAMES)
    assert "codes and descriptors compared per query" in figure
    assert "rotation-90" in (workspace / "out" / "edits.md").read_text()


def test_wrong_calls_are_refused_before_any_work(workspace: Path, tmp_path: Path) -> None:
    train("PQ4x4").write(tmp_path / "flat.codebook")
    with pytest.raises(HomingError, match=r"\(PQ4x4\) has no cells to select; give a codebook of an IVF index"):
        bench(workspace, "--codebook", tmp_path / "flat.codebook", "--out", tmp_path / "out")
    with pytest.raises(HomingError, match="did you mean 'paper'"):
        bench(workspace, "--recipe", "papper", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
