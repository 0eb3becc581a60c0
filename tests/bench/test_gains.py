"""The gain from activation by index."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.bench.helpers import homing, small_network, small_photos
from tests.conftest import descriptors

from homing.bench.scores import gain_interval, published_gain

SPECS = ["IVF4,Flat", "PCA16,LSH", "Flat"]


@pytest.mark.parametrize(
    ("index", "probes", "gain"),
    [("IVF1024,Flat", 1, 0.36), ("PCA64,LSH", 1, 0.11), ("PCA64,LSH", 16, 0.11), ("OPQ8,PQ8x8", 1, 0.02),
     ("IVF4096,PQ8x8", 1, 0.30), ("IVF4096,PQ8x8", 16, 0.09), ("IVF512,PQ32x8", 32, 0.02)],
)  # fmt: skip
def test_published_gains(index: str, probes: int, gain: float) -> None:
    passive, activated = published_gain(index, probes, "paper")
    assert activated - passive == pytest.approx(gain)


@pytest.mark.parametrize(
    ("index", "probes", "recipe"),
    [("IVF1024,Flat", 16, "paper"), ("SQ8", 1, "paper"), ("Flat", 1, "paper"), ("PCA64,LSH", 1, "paper-fast")],
)
def test_unpublished_gains_are_none(index: str, probes: int, recipe: str) -> None:
    assert published_gain(index, probes, recipe) is None


def test_the_interval_of_a_gain_is_the_bootstrap_over_photos() -> None:
    rng = np.random.default_rng(0)
    before = rng.random((40, 5)) < 0.4
    after = before | (rng.random((40, 5)) < 0.3)
    means = [float(after[sample].mean() - before[sample].mean()) for sample in rng.integers(40, size=(4000, 40))]
    assert gain_interval(before, after) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.02)


def test_a_bench_of_several_indexes_has_a_row_for_each(tmp_path: Path) -> None:
    photos = small_photos(tmp_path / "photos", [f"photo-{number}" for number in range(3)], 0)
    others = small_photos(tmp_path / "others", [f"other-{number}" for number in range(12)], 1)
    network = small_network(tmp_path)
    np.save(tmp_path / "training.npy", descriptors(400, dim=108).numpy())
    call = ["bench", "retrieval", "--photos", photos, "--distractor-photos", others, "--distractors", 12]
    call += ["--out", tmp_path / "out"]
    call += ["--extractor", network, "--train-photos", tmp_path / "training.npy", "--probes", "1,2,exact"]
    call += ["--recipes", "passive,paper-fast", *(word for spec in SPECS for word in ("--index", spec))]
    printed = homing(*call)
    output = json.loads((tmp_path / "out" / "results.json").read_text())
    means = {(row["spec"], row["recipe"]): row["mean"] for row in output["rows"] if row["probes"] == 1}
    assert set(means) == {(spec, recipe) for spec in SPECS for recipe in ("passive", "paper-fast")} - {
        ("Flat", "paper-fast")
    }
    # An index without cells is searched once.
    assert [(gain["spec"], gain["probes"]) for gain in output["gains"]] == [(SPECS[0], 1), (SPECS[0], 2), (SPECS[1], 1)]
    for gain in (gain for gain in output["gains"] if gain["probes"] == 1):
        assert gain["passive"] == pytest.approx(means[gain["spec"], "passive"])
        assert gain["activated"] == pytest.approx(means[gain["spec"], "paper-fast"])
        assert f"{gain['activated'] - gain['passive']:+.3f}" in printed
    (flat,) = (line for line in (tmp_path / "out" / "gains.md").read_text().splitlines() if "| Flat |" in line)
    assert "not supported" in flat
    table = (tmp_path / "out" / "table.md").read_text().splitlines()
    cells = [line.split("|")[2:4] for line in table if "small.pt" in line]
    without = {probes.strip() for index, probes in cells if "IVF" not in index and "none" not in index}
    assert without == {"–"}  # no probes without cells
    assert "not supported" in printed
