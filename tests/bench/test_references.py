"""Search among distractors, compared with an index that FAISS filled."""

import faiss
import numpy as np
import pytest
import torch
from tests.conftest import FakeExtractor, descriptors

from homing.bench import references
from homing.bench.data import DescriptorSet
from homing.bench.references import References
from homing.codebooks import Codebook

PHOTOS, DISTRACTORS, DIM = 40, 1500, 32
SPECS = ["IVF16,PQ8x4", "IVF16,PQ8x8", "PQ8x4", "OPQ8,PQ8x4", "OPQ8,IVF16,PQ8x4", "IVF16,SQ8", "SQ8", "RQ4x4", "Flat"]


def filled(spec: str) -> tuple[References, Codebook, np.ndarray]:
    """Photos among distractors, the codebook, and all descriptors in the order of ids."""
    book = Codebook.train(descriptors(1000, seed=1).numpy(), spec=spec, extractor=FakeExtractor(), name="test")
    originals, distractors = descriptors(PHOTOS, seed=2), descriptors(DISTRACTORS, seed=3).numpy().astype(np.float16)
    everything = np.concatenate([originals.numpy(), distractors.astype(np.float32)])
    return (
        References(book, originals, DescriptorSet(distractors, DISTRACTORS, []), torch.device("cpu")),
        book,
        everything,
    )


@pytest.fixture
def queries() -> np.ndarray:
    return descriptors(50, seed=4).numpy()


@pytest.mark.parametrize("probes", [1, 4, 16])
@pytest.mark.parametrize("spec", SPECS)
def test_results_equal_those_of_faiss(
    spec: str, probes: int, queries: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(references, "_REFERENCES_AT_ONCE", 700)  # several chunks
    monkeypatch.setattr(references, "_QUERIES_AT_ONCE", 20)
    among, book, everything = filled(spec)
    theirs = book.new_faiss()
    theirs.add(everything)
    ivf = faiss.try_extract_index_ivf(theirs)
    if ivf is not None:
        ivf.nprobe = probes
    squared, ids = theirs.search(queries, 10)
    found = among.search(queries, 10, probes)
    # The order of ties is arbitrary: compare distances.
    np.testing.assert_allclose(found.distances, np.sqrt(np.maximum(squared, 0)), atol=1e-3)
    assert (found.ids == ids).mean() > 0.95
    assert len(among) == PHOTOS + DISTRACTORS


def test_exact_search_equals_a_flat_index(queries: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "_REFERENCES_AT_ONCE", 64)
    monkeypatch.setattr(references, "_QUERIES_AT_ONCE", 20)
    among, _, everything = filled("IVF16,PQ8x4")
    flat = faiss.IndexFlatL2(DIM)
    flat.add(everything)
    squared, ids = flat.search(queries, 100)
    found = among.search(queries, 100, "exact")
    np.testing.assert_array_equal(found.ids, ids)
    np.testing.assert_allclose(found.distances, np.sqrt(squared), atol=1e-3)


def test_distractors_known_by_code_only_keep_their_codes(queries: np.ndarray) -> None:
    book = Codebook.train(descriptors(1000, seed=1).numpy(), spec="IVF16,PQ8x4", extractor=FakeExtractor(), name="test")
    originals, codes = descriptors(PHOTOS, seed=2), book.encode(descriptors(DISTRACTORS, seed=3))
    decoded = book.decode(codes)
    assert (book.encode(decoded) != codes).any()  # encoding decoded descriptors would change some codes
    known = DescriptorSet(decoded.numpy(), DISTRACTORS, [], codes)
    among = References(book, originals, known, torch.device("cpu"))
    theirs = book.new_faiss()
    theirs.add_sa_codes(np.concatenate([book.encode(originals), codes]))
    theirs.nprobe = 4
    squared, _ = theirs.search(queries, 10)
    np.testing.assert_allclose(among.search(queries, 10, 4).distances, np.sqrt(np.maximum(squared, 0)), atol=1e-3)
    # Every other comparison is with the decoded descriptors.
    points = np.concatenate([originals.numpy(), decoded.numpy()])
    exact = np.sort(np.linalg.norm(queries[:, None] - points[None], axis=2), axis=1)[:, :10]
    np.testing.assert_allclose(among.search(queries, 10, "exact").distances, exact, atol=1e-3)


def test_results_are_limited_by_the_references(queries: np.ndarray) -> None:
    among, _, _ = filled("IVF16,PQ8x4")
    assert among.search(queries, 10_000, "exact").ids.shape == (50, PHOTOS + DISTRACTORS)
    one_cell = among.search(queries, 1000, 1)
    assert (one_cell.ids[:, -1] == -1).all()
    assert np.isfinite(one_cell.distances[one_cell.ids >= 0]).all()


@pytest.mark.parametrize(("spec", "size"), [("IVF16,PQ8x8", 8), ("PQ8x4", 4), ("OPQ8,IVF16,PQ8x4", 4), ("SQ8", 32)])
def test_bytes_per_vector_are_those_of_the_code(spec: str, size: int) -> None:
    assert filled(spec)[0].bytes_per_vector == size


def test_timing_restores_the_number_of_threads(queries: np.ndarray) -> None:
    among, _, _ = filled("IVF16,PQ8x4")
    before = faiss.omp_get_max_threads()
    ours, theirs = among.index_ms(queries, 10, 1)
    assert 0 < theirs <= ours < 1000
    assert faiss.omp_get_max_threads() == before
