"""Collections of photos that are much alike: chances go by how near the crowd of a query lies."""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conftest import FakeExtractor, descriptors

from homing.codebooks import Codebook
from homing.codebooks.pairs import crowds_in, distances_between
from homing.collection import Collection
from homing.collection.catalogue import NewPhoto
from homing.errors import CollectionError

DIM = 64


def alike(count: int, seed: int) -> torch.Tensor:
    """Descriptors that lie to one side: nearer to each other than those a codebook knows."""
    rows = descriptors(count, seed=seed, dim=DIM)
    rows[:, 0] += 0.4
    return torch.nn.functional.normalize(rows, dim=1)


@pytest.fixture(scope="module")
def book() -> Codebook:
    """A codebook for photos of all kinds."""
    rows = descriptors(3000, seed=1, dim=DIM).numpy()
    return Codebook.train(rows, spec="IVF8,PQ8x6", extractor=FakeExtractor(), name="random")


def put(opened: Collection, rows: torch.Tensor, start: int = 0) -> None:
    codes = opened.codebook.encode(rows)
    opened.record([NewPhoto(f"{start + n}", f"/{start + n}.jpg", codes[n], row.numpy()) for n, row in enumerate(rows)])


@pytest.mark.parametrize("rerank", [0, 200])
def test_photos_that_are_much_alike_find_each_other_as_often_as_stated(
    tmp_path: Path, book: Codebook, rerank: int
) -> None:
    with Collection.create(tmp_path / "c.homing", codebook=book) as opened:
        put(opened, alike(400, seed=2))
        found = opened.search_descriptors(alike(3000, seed=3), k=1, probes=8, rerank=rerank)
    stated = np.array([matches[0].chance for matches in found])
    distances = np.array([matches[0].distance for matches in found])
    blind = book.unrelated.chance("descriptor" if rerank else "code", distances, 400)
    for chance in (0.1, 0.01):
        assert 0.4 < (stated <= chance).mean() / chance < 2
        assert (blind <= chance).mean() / chance > 2.5


def test_few_references_tell_nothing_and_more_are_asked_when_there_are_more(tmp_path: Path, book: Codebook) -> None:
    query = alike(2, seed=4)
    queries = query[:, None].numpy()
    with Collection.create(tmp_path / "c.homing", codebook=book) as opened:
        put(opened, descriptors(99, seed=5, dim=DIM))
        assert opened.folder.crowd.crowds(queries, opened.index) is None
        match = opened.search_descriptors(query, k=1)[0][0]
        assert match.chance == pytest.approx(book.unrelated.chance("descriptor", np.array(match.distance), 99))
        put(opened, descriptors(101, seed=6, dim=DIM), start=99)
        before = opened.folder.crowd.crowds(queries, opened.index)
        assert before is not None
        put(opened, alike(1000, seed=2), start=200)
        after = opened.folder.crowd.crowds(queries, opened.index)
    assert after is not None
    assert (after < before - 0.05).all()
    own = crowds_in(distances_between(query.numpy(), alike(1000, seed=2).numpy()))
    np.testing.assert_allclose(after, own, atol=0.05)


def test_a_query_that_is_described_often_has_the_nearest_crowd(tmp_path: Path, book: Codebook) -> None:
    with Collection.create(tmp_path / "c.homing", codebook=book) as opened:
        put(opened, alike(300, seed=2))
        turned = torch.stack([alike(4, seed=3), descriptors(4, seed=3, dim=DIM)], dim=1).numpy()
        both = opened.folder.crowd.crowds(turned, opened.index)
        each = [opened.folder.crowd.crowds(turned[:, turn : turn + 1], opened.index) for turn in (0, 1)]
    np.testing.assert_allclose(both, np.minimum(*each), rtol=1e-5)


def test_descriptors_that_are_damaged_are_told(tmp_path: Path, book: Codebook) -> None:
    with Collection.create(tmp_path / "c.homing", codebook=book) as opened:
        put(opened, alike(120, seed=2))
        with closing(sqlite3.connect(tmp_path / "c.homing" / "catalogue.sqlite", isolation_level=None)) as database:
            database.execute("UPDATE descriptors SET vector = zeroblob(7) WHERE photo = 5")
        with pytest.raises(CollectionError, match="mend it with: homing check"):
            opened.search_descriptors(alike(1, seed=3), k=1, rerank=0)
