"""Edge cases of a search: no queries, few references, damaged descriptors, and the number of catalog queries."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.conftest import FakeExtractor, descriptors

from homing.codebooks import Codebook
from homing.collection import Collection
from homing.collection.references import NewPhotos, StoredRelease
from homing.errors import CollectionError, HomingError

DIM, COUNT = 16, 40


@pytest.fixture
def random(tmp_path: Path) -> Iterator[Collection]:
    """Random descriptors of activated photos in eight cells; half of them in one dense cluster."""
    rows = descriptors(COUNT, seed=2, dim=DIM)
    training_rows = descriptors(3000, seed=1, dim=DIM).numpy()
    cluster = np.concatenate([training_rows[:500], training_rows[0] + 0.2 * training_rows[500:1000]])
    book = Codebook.train(training_rows, spec="IVF8,PQ8x6", extractor=FakeExtractor(), name="random", photos=cluster)
    with Collection.create(tmp_path / "c.homing", codebook=book) as opened:
        codes = book.encode(rows)
        hashes, sources = [f"{n}" for n in range(COUNT)], [f"/{n}.jpg" for n in range(COUNT)]
        opened.record(NewPhotos(hashes, sources, codes, rows.numpy()))
        quality = {"psnr": 44.0, "ssim": 0.99, "linf": 8.0, "reason": None}
        planned = [
            StoredRelease(n + 1, f"/out/{n}.jpg", "activated", f"r{n}", "recipe", **quality, vector=half.tobytes())
            for n, half in enumerate(rows.numpy().astype(np.float16))
        ]
        opened.storage.plan_releases(planned)
        opened.storage.confirm_releases(planned)
        yield opened


def test_all_references_of_a_cell_are_found_whatever_their_probability(random: Collection) -> None:
    """If a cell has fewer than k references, certain false matches are returned too."""
    queries = descriptors(30, seed=3, dim=DIM)
    by_code = random.search_descriptors(queries, k=10, probes=1, rerank=0)
    again = random.search_descriptors(queries, k=10, probes=1, rerank=COUNT)
    assert [{match.id for match in found} for found in again] == [{match.id for match in found} for found in by_code]
    assert max(match.false_match_probability for found in again for match in found) == 1


def test_no_queries_have_no_matches(random: Collection) -> None:
    assert random.search_descriptors(torch.empty(0, DIM)) == []
    assert random.search_descriptors(torch.empty(0, 5, DIM)) == []


@pytest.mark.parametrize(
    "wrong", [None, [0.5], np.zeros((1, DIM)), torch.zeros(DIM), torch.zeros(1, 1, 1, DIM), torch.zeros(1, 3)]
)
def test_descriptors_of_another_shape_are_refused(random: Collection, wrong: Any) -> None:
    with pytest.raises(HomingError, match=rf"of shape \(B, {DIM}\) or \(B, T, {DIM}\), got"):
        random.search_descriptors(wrong)


def test_k_can_be_larger_than_the_collection(random: Collection) -> None:
    (found,) = random.search_descriptors(descriptors(1, seed=3, dim=DIM), k=10 * COUNT)
    assert sorted(match.id or 0 for match in found) == list(range(1, COUNT + 1))


@pytest.mark.parametrize("vector", [bytes(7), bytes(8), np.full(DIM, np.nan, np.float16).tobytes()])
def test_damaged_descriptors_are_reported(random: Collection, vector: bytes) -> None:
    with random.storage._transaction() as change:
        change.execute("UPDATE descriptors SET vector = ? WHERE photo = 5", (vector,))
    with pytest.raises(CollectionError, match="descriptors of another network; repair it with: homing check"):
        random.search_descriptors(descriptors(1, seed=3, dim=DIM), k=COUNT)


def test_the_number_of_catalog_queries_does_not_depend_on_matches(random: Collection) -> None:
    statements: list[str] = []
    query = descriptors(1, seed=3, dim=DIM)
    random.search_descriptors(query)
    random.storage._database.set_trace_callback(statements.append)
    for k in (1, COUNT):
        statements.clear()
        assert len(random.search_descriptors(query, k=k)[0]) == k
        assert len(statements) <= 4, statements
    random.storage._database.set_trace_callback(None)
