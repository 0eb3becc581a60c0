"""The bench of chances, as a script would call it."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import descriptors
from tests.evaluation.small import homing, small_network, small_photos

from homing import extractors
from homing.codebooks import Codebook
from homing.errors import HomingError

DIM = 108


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random descriptors, a codebook that has learnt from others of their kind, and one that knows of nearer ones."""
    folder = tmp_path_factory.mktemp("sure")
    network = extractors.load(str(small_network(folder)))
    taught, held_out, others = (descriptors(2400, seed=seed, dim=DIM).numpy() for seed in (1, 2, 3))
    np.save(folder / "strangers.npy", held_out)
    book = Codebook.train(taught, spec="IVF8,PQ4x6", extractor=network, name="right", photos=others)
    book.write(folder / "right.codebook")
    nearer = taught + 0.5 * taught[0]
    book.measured_on(nearer / np.linalg.norm(nearer, axis=1, keepdims=True)).write(folder / "wrong.codebook")
    return folder


def rows(desk: Path, book: str) -> list[dict]:
    setting = ("--background", desk / "strangers.npy", "--out", desk / book, "--strangers", 2400)
    printed = json.loads(homing("bench", "sure", *setting, "--codebook", desk / f"{book}.codebook", "--json"))
    assert printed == json.loads((desk / book / "results.json").read_text())
    return [row for row in printed["rows"] if row["judged"]]


def test_random_descriptors_come_as_near_as_stated(desk: Path) -> None:
    said = rows(desk, "right")
    assert {(row["by"], row["references"]) for row in said} >= {("code", 100), ("descriptor", 100), ("code", 1000)}
    assert min(row["stated"] for row in said) == 1e-4
    for row in said:
        assert row["observed"] == row["found"] / row["searches"]
        assert 0.5 < row["observed"] / row["stated"] < 2, row


def test_wrong_chances_are_told(desk: Path) -> None:
    """Statistics of photos that are more alike say that a match is likelier than it is."""
    assert max(row["observed"] / row["stated"] for row in rows(desk, "wrong") if row["references"] == 100) < 0.5


def test_table_and_page(desk: Path) -> None:
    setting = ("--background", desk / "strangers.npy", "--out", desk / "told", "--strangers", 400)
    said = homing("bench", "sure", *setting, "--codebook", desk / "right.codebook")
    assert "400 unrelated photos: each half searched for in collections of the other" in said
    assert "descriptor" in said
    assert (desk / "told" / "report.html").is_file()
    assert (desk / "told" / "chances.svg").is_file()


def test_photos_are_described_once_each(desk: Path) -> None:
    """More strangers than photos would be crops of the same ones, which are related."""
    small_photos(desk / "photos", [f"photo{number}" for number in range(8)], seed=1)
    setting = ("--background", desk / "photos", "--out", desk / "few", "--strangers", 50)
    printed = json.loads(homing("bench", "sure", *setting, "--codebook", desk / "right.codebook", "--json"))
    assert printed["settings"]["strangers"] == 8


def test_too_few_are_refused(desk: Path) -> None:
    setting = ("--background", desk / "strangers.npy", "--out", desk / "x", "--codebook", desk / "right.codebook")
    with pytest.raises(HomingError, match="among others, got 1; give 2 or more"):
        homing("bench", "sure", *setting, "--strangers", 1)
