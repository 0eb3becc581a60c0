"""Searches at the edges: nothing asked for, little found, descriptors that are damaged, and what one search costs."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conftest import FakeExtractor, descriptors

from homing.codebooks import Codebook
from homing.collection import Collection
from homing.collection.catalog import NewPhotos, ReleaseRow
from homing.errors import CollectionError

DIM, COUNT = 16, 40


@pytest.fixture
def random(tmp_path: Path) -> Iterator[Collection]:
    """Random descriptors in eight cells, each of a photo that was activated; half of all photos lie in one crowd."""
    rows = descriptors(COUNT, seed=2, dim=DIM)
    training_rows = descriptors(3000, seed=1, dim=DIM).numpy()
    crowd = np.concatenate([training_rows[:500], training_rows[0] + 0.2 * training_rows[500:1000]])
    book = Codebook.train(training_rows, spec="IVF8,PQ8x6", extractor=FakeExtractor(), name="random", photos=crowd)
    with Collection.create(tmp_path / "c.homing", codebook=book) as opened:
        codes = book.encode(rows)
        hashes, sources = [f"{n}" for n in range(COUNT)], [f"/{n}.jpg" for n in range(COUNT)]
        opened.record(NewPhotos(hashes, sources, codes, rows.numpy()))
        planned = [
            (n + 1, ReleaseRow("activated", f"/out/{n}.jpg", f"r{n}", "recipe", 44.0, 0.99, 8.0, None))
            for n in range(COUNT)
        ]
        opened.folder.catalog.plan_releases(planned, list(rows.numpy()))
        opened.folder.catalog.confirm_releases(planned)
        yield opened


def test_all_that_a_cell_holds_is_found_however_likely_it_is(random: Collection) -> None:
    """A cell that holds less than is asked for: what is certain to be chance is a match all the same."""
    queries = descriptors(30, seed=3, dim=DIM)
    by_code = random.search_descriptors(queries, k=10, probes=1, rerank=0)
    again = random.search_descriptors(queries, k=10, probes=1, rerank=COUNT)
    assert [{match.id for match in some} for some in again] == [{match.id for match in some} for some in by_code]
    assert max(match.false_match_probability for some in again for match in some) == 1


def test_no_queries_have_no_matches(random: Collection) -> None:
    assert random.search_descriptors(torch.empty(0, DIM)) == []
    assert random.search_descriptors(torch.empty(0, 5, DIM)) == []


def test_more_may_be_asked_for_than_there_is(random: Collection) -> None:
    (found,) = random.search_descriptors(descriptors(1, seed=3, dim=DIM), k=10 * COUNT)
    assert sorted(match.id or 0 for match in found) == list(range(1, COUNT + 1))


@pytest.mark.parametrize("vector", [bytes(7), bytes(8), np.full(DIM, np.nan, np.float16).tobytes()])
def test_descriptors_that_are_damaged_are_told(random: Collection, vector: bytes) -> None:
    with random.folder.catalog._transaction() as change:
        change.execute("UPDATE descriptors SET vector = ? WHERE photo = 5", (vector,))
    with pytest.raises(CollectionError, match="descriptors of another network; repair it with: homing check"):
        random.search_descriptors(descriptors(1, seed=3, dim=DIM), k=COUNT)


def test_a_search_asks_the_catalog_as_often_for_many_matches_as_for_one(random: Collection) -> None:
    asked: list[str] = []
    query = descriptors(1, seed=3, dim=DIM)
    random.search_descriptors(query)
    random.folder.catalog._database.set_trace_callback(asked.append)
    for k in (1, COUNT):
        asked.clear()
        assert len(random.search_descriptors(query, k=k)[0]) == k
        assert len(asked) <= 4, asked
    random.folder.catalog._database.set_trace_callback(None)
