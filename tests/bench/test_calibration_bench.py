"""The calibration bench on the command line."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.bench.helpers import homing, small_network, small_photos
from tests.conftest import descriptors

from homing import codebooks, extractors
from homing.bench.benches.calibration import false_match_rows
from homing.bench.data import DescriptorSet
from homing.codebooks import Codebook
from homing.codebooks.null_distribution import NO_PAIRS
from homing.errors import HomingError

pytestmark = pytest.mark.slow

DIM = 108


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random descriptors, a calibrated codebook, and one whose null distribution is of nearer descriptors."""
    folder = tmp_path_factory.mktemp("false_match")
    network = extractors.load(str(small_network(folder)))
    training, held_out, others = (descriptors(2400, seed=seed, dim=DIM).numpy() for seed in (1, 2, 3))
    np.save(folder / "distractors.npy", held_out)
    book = Codebook.train(training, spec="IVF8,PQ4x6", extractor=network, name="right", photos=others)
    book.write(folder / "right.codebook")
    nearer = training + 0.5 * training[0]
    book.with_null_distribution(nearer / np.linalg.norm(nearer, axis=1, keepdims=True)).write(folder / "wrong.codebook")
    return folder


@contextmanager
def quietly(_: str, __: int) -> Iterator[Callable[[], None]]:
    """Progress without output."""
    yield lambda: None


def rows(workspace: Path, book: str) -> list[dict]:
    setting = ("--distractor-photos", workspace / "distractors.npy", "--out", workspace / book, "--distractors", 2400)
    printed = json.loads(
        homing("bench", "calibration", *setting, "--codebook", workspace / f"{book}.codebook", "--json")
    )
    assert printed == json.loads((workspace / book / "results.json").read_text())
    return [row for row in printed["rows"] if row["enough_searches"]]


def test_probabilities_of_random_descriptors_are_calibrated(workspace: Path) -> None:
    output = rows(workspace, "right")
    assert {(row["compared"], row["references"]) for row in output} >= {
        ("code", 100),
        ("descriptor", 100),
        ("code", 1000),
    }
    assert min(row["stated"] for row in output) == 1e-4
    for row in output:
        assert row["observed"] == row["found"] / row["searches"]
        assert 0.5 < row["observed"] / row["stated"] < 2, row


def test_wrong_probabilities_are_detected(workspace: Path) -> None:
    """A null distribution of more similar photos overestimates false-match probabilities."""
    assert max(row["observed"] / row["stated"] for row in rows(workspace, "wrong") if row["references"] == 100) < 0.5


def test_the_density_ratio_corrects_for_similar_references(workspace: Path) -> None:
    """Similar photos, with a codebook for photos of all kinds."""
    similar = descriptors(2400, seed=4, dim=DIM).numpy()
    similar[:, 0] += 0.2
    similar /= np.linalg.norm(similar, axis=1, keepdims=True)
    book = codebooks.load(str(workspace / "right.codebook"))
    output = {
        (row["compared"], row["references"], row["stated"]): row["observed"] / row["stated"]
        for row in false_match_rows(book, DescriptorSet(similar, len(similar), []), NO_PAIRS, quietly)
    }
    assert output["descriptor", 10, 0.01] > 2.5
    assert 0.4 < output["descriptor", 100, 0.01] < 2
    assert 0.4 < output["descriptor", 1000, 0.01] < 2


def test_the_command_writes_a_table_and_a_page(workspace: Path) -> None:
    setting = ("--distractor-photos", workspace / "distractors.npy", "--out", workspace / "out", "--distractors", 400)
    output = homing("bench", "calibration", *setting, "--codebook", workspace / "right.codebook")
    assert "400 unrelated photos: each half searched for in collections of the other" in output
    assert "descriptor" in output
    assert (workspace / "out" / "report.html").is_file()
    assert (workspace / "out" / "calibration.svg").is_file()


def test_photos_are_described_without_crops(workspace: Path) -> None:
    """Crops of the same photo are related, so there are none."""
    small_photos(workspace / "photos", [f"photo{number}" for number in range(8)], seed=1)
    setting = ("--distractor-photos", workspace / "photos", "--out", workspace / "few", "--distractors", 50)
    printed = json.loads(homing("bench", "calibration", *setting, "--codebook", workspace / "right.codebook", "--json"))
    assert printed["settings"]["distractors"] == 8


def test_photos_of_the_same_scene_are_excluded(workspace: Path, photos: Path) -> None:
    folder = workspace / "scenes"
    folder.mkdir()
    for name in ("flower.jpg", "rocket.jpg"):
        folder.joinpath(name).write_bytes((photos / name).read_bytes())
    with Image.open(photos / "flower.jpg") as flower:
        flower.crop((60, 40, 560, 400)).save(folder / "part.jpg")
    command = ("bench", "calibration", "--codebook", workspace / "right.codebook", "--json")
    setting = ("--out", workspace / "apart", "--distractor-photos")
    flags: tuple[tuple[str, ...], ...] = ((), ("--exclude-related",))
    every, unrelated = (json.loads(homing(*command, *setting, folder, *flag)) for flag in flags)
    assert (every["settings"]["related_pairs_excluded"], unrelated["settings"]["related_pairs_excluded"]) == (0, 1)
    with pytest.raises(HomingError, match="give a folder of photos"):
        homing(*command, *setting, workspace / "distractors.npy", "--exclude-related")


def test_related_pairs_are_not_counted(workspace: Path) -> None:
    """Half of the photos are copies of the others: when excluded, false matches are as rare as stated."""
    book = codebooks.load(str(workspace / "right.codebook"))
    photos = descriptors(600, seed=9, dim=DIM).numpy()
    distractors = DescriptorSet(np.concatenate([photos, photos]), 1200, [])
    copies = np.stack([np.arange(600), 600 + np.arange(600)], axis=1)
    for related, copy_matches in ((NO_PAIRS, 600), (copies, 0)):
        row = next(
            row
            for row in false_match_rows(book, distractors, related, quietly)
            if (row["references"], row["stated"]) == (1, 1e-4)
        )
        assert abs(row["found"] - copy_matches - 72) < 60, row["found"]
