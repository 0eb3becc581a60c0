"""The bench of chances, as a script would call it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.conftest import descriptors
from tests.evaluation.small import homing, small_network, small_photos

from homing import codebooks, extractors
from homing.codebooks import Codebook
from homing.codebooks.pairs import NO_PAIRS
from homing.errors import HomingError
from homing.evaluation.benches.sure import measured
from homing.evaluation.protocol.strangers import Strangers

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


@contextmanager
def quietly(_: str, __: int) -> Iterator[Callable[[], None]]:
    """A stage that says nothing."""
    yield lambda: None


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


def test_references_that_are_more_alike_tell_so_where_there_are_enough(desk: Path) -> None:
    """Photos of one kind and a codebook for all kinds."""
    alike = descriptors(2400, seed=4, dim=DIM).numpy()
    alike[:, 0] += 0.2
    alike /= np.linalg.norm(alike, axis=1, keepdims=True)
    book = codebooks.load(str(desk / "right.codebook"))
    said = {
        (row.by, row.references, row.stated): row.observed / row.stated
        for row in measured(book, Strangers(alike, len(alike), []), NO_PAIRS, quietly)
    }
    assert said["descriptor", 10, 0.01] > 2.5
    assert 0.4 < said["descriptor", 100, 0.01] < 2
    assert 0.4 < said["descriptor", 1000, 0.01] < 2


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


def test_photos_of_one_scene_are_left_out(desk: Path, photos: Path) -> None:
    folder = desk / "scenes"
    folder.mkdir()
    for name in ("flower.jpg", "rocket.jpg"):
        folder.joinpath(name).write_bytes((photos / name).read_bytes())
    with Image.open(photos / "flower.jpg") as flower:
        flower.crop((60, 40, 560, 400)).save(folder / "part.jpg")
    setting = ("--background", folder, "--out", desk / "apart", "--codebook", desk / "right.codebook", "--json")
    every, some = (json.loads(homing("bench", "sure", *setting, *flag)) for flag in ((), ("--leave-out-related",)))
    assert (every["settings"]["related_pairs_left_out"], some["settings"]["related_pairs_left_out"]) == (0, 1)
    with pytest.raises(HomingError, match="give a folder of photos"):
        homing("bench", "sure", "--background", desk / "strangers.npy", *setting[2:], "--leave-out-related")


def test_related_pairs_are_no_matches(desk: Path) -> None:
    """Half of the photos are copies of the others: left out, they find no more than any do."""
    book = codebooks.load(str(desk / "right.codebook"))
    photos = descriptors(600, seed=9, dim=DIM).numpy()
    strangers = Strangers(np.concatenate([photos, photos]), 1200, [])
    copies = np.stack([np.arange(600), 600 + np.arange(600)], axis=1)
    for related, sure in ((NO_PAIRS, 600), (copies, 0)):
        row = next(
            row for row in measured(book, strangers, related, quietly) if (row.references, row.stated) == (1, 1e-4)
        )
        assert abs(row.found - sure - 72) < 60, row.found


def test_too_few_are_refused(desk: Path) -> None:
    setting = ("--background", desk / "strangers.npy", "--out", desk / "x", "--codebook", desk / "right.codebook")
    with pytest.raises(HomingError, match="among others, got 1; give 2 or more"):
        homing("bench", "sure", *setting, "--strangers", 1)
