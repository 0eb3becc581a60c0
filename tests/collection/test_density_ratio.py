"""Density ratio: for collections of similar photos, false-match probabilities are larger by that factor."""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conftest import FakeExtractor, descriptors

from homing.codebooks import Codebook
from homing.collection import Collection
from homing.collection.references import NewPhotos
from homing.errors import CollectionError

DIM = 64


def similar_descriptors(count: int, seed: int) -> torch.Tensor:
    """Descriptors in one direction, nearer to each other than those of the codebook's null distribution."""
    rows = descriptors(count, seed=seed, dim=DIM)
    rows[:, 0] += 0.3
    return torch.nn.functional.normalize(rows, dim=1)


@pytest.fixture(scope="module")
def book() -> Codebook:
    """A codebook for photos of all kinds."""
    rows = descriptors(3000, seed=1, dim=DIM).numpy()
    return Codebook.train(rows, spec="IVF8,PQ8x6", extractor=FakeExtractor(), name="random")


def add_descriptors(opened: Collection, rows: torch.Tensor, start: int = 0) -> None:
    names = [f"{start + n}" for n in range(len(rows))]
    sources = [f"/{name}.jpg" for name in names]
    opened.record(NewPhotos(names, sources, opened.codebook.encode(rows), rows.numpy()))


def test_false_matches_of_similar_photos_are_as_frequent_as_stated(tmp_path: Path, book: Codebook) -> None:
    with Collection.create(tmp_path / "c.homing", codebook=book) as opened:
        add_descriptors(opened, similar_descriptors(400, seed=2))
        found = opened.search_descriptors(similar_descriptors(3000, seed=3), k=1, probes=8, rerank=200)
    stated = np.array([matches[0].false_match_probability for matches in found])
    blind = book.null_distribution.false_match_probability(
        "descriptor", np.array([matches[0].distance for matches in found]), 400
    )
    for level in (0.1, 0.01):
        assert 0.4 < (stated <= level).mean() / level < 2.5
        assert (blind <= level).mean() / level > 2.5


def test_the_ratio_is_measured_again_as_the_collection_grows(tmp_path: Path, book: Codebook) -> None:
    query = similar_descriptors(1, seed=4)
    with Collection.create(tmp_path / "c.homing", codebook=book) as opened:
        for start, count, ratio in ((0, 99, 1.0), (99, 101, 3.0), (200, 5, 3.0), (205, 1000, 5.0)):
            add_descriptors(opened, similar_descriptors(count, seed=5 + start), start=start)
            assert opened.density_ratio >= ratio
            match = opened.search_descriptors(query, k=1)[0][0]
            expected = book.null_distribution.false_match_probability(
                "descriptor", np.array(match.distance), start + count, opened.density_ratio
            )
            assert match.false_match_probability == pytest.approx(float(expected))
            if not start:
                assert opened.density_ratio == 1


def test_damaged_descriptors_are_reported(tmp_path: Path, book: Codebook) -> None:
    with Collection.create(tmp_path / "c.homing", codebook=book) as opened:
        add_descriptors(opened, similar_descriptors(120, seed=2))
        with closing(sqlite3.connect(tmp_path / "c.homing" / "catalog.sqlite", isolation_level=None)) as database:
            database.execute("UPDATE descriptors SET vector = zeroblob(2) WHERE photo = 5")
        with pytest.raises(CollectionError, match="repair it with: homing check"):
            opened.search_descriptors(similar_descriptors(119, seed=2)[:1], k=1, rerank=1)
