"""Indexes of every family, compared with FAISS on the same descriptors."""

from collections.abc import Iterator

import faiss
import numpy as np
import pytest
import torch
from tests.conftest import descriptors, train

from homing.codebooks import Codebook
from homing.indexes import FaissIndex
from homing.indexes.faiss import EF_SEARCH

FAMILIES = [
    "Flat", "PQ4x6", "OPQ4,PQ4x4", "OPQ4_16,PQ4x4", "IVF16,PQ4x6", "OPQ4,IVF16,PQ4x4", "IVF16_HNSW8,PQ4x6",
    "IVF16,Flat", "PCA16,IVF16,Flat", "SQ8", "SQfp16", "IVF16,SQ8",
    "RQ4x4", "LSQ4x4", "PRQ2x2x4", "PLSQ2x2x4", "IVF16,RQ4x4", "IVF16,LSQ4x4", "IVF16,PRQ2x2x4",
    "LSH", "LSH16", "LSH16rt", "PCA16,LSH", "ITQ16,LSH", "RaBitQ", "RaBitQ4", "RR16,RaBitQ", "IVF16,RaBitQ",
    "PQ8x4fs", "PQ7x4fs_64", "OPQ8,PQ8x4fs", "IVF16,PQ8x4fs", "IVF16,PQ8x4fsr", "OPQ8,IVF16,PQ8x4fs",
    "HNSW8,Flat", "HNSW8", "HNSW8,SQ8", "HNSW8,PQ8x4", "OPQ8,HNSW8,PQ8x4",
]  # fmt: skip
PROBES = 4


@pytest.fixture(scope="module", params=FAMILIES)
def codebook(request: pytest.FixtureRequest) -> Codebook:
    dim = 28 if request.param.startswith("PQ7") else 32
    return train(request.param, dim=dim)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Build graphs with one thread, because several threads build a different graph each time."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(before)


def random_descriptors(codebook: Codebook, count: int, seed: int) -> torch.Tensor:
    return descriptors(count, seed, codebook.dim)


def is_graph(codebook: Codebook) -> bool:
    return isinstance(codebook.quantizer.inner, faiss.IndexHNSW)


def filled(codebook: Codebook, references: torch.Tensor, ids: np.ndarray) -> FaissIndex:
    index = FaissIndex(codebook)
    for part, numbers in zip(references.split(250), np.split(ids, range(250, len(ids), 250)), strict=True):
        index.add(codebook.encode(part), numbers)
    return index


def by_faiss(codebook: Codebook, references: torch.Tensor, queries: torch.Tensor, k: int) -> tuple:
    """The results of FAISS's own index.

    Our graphs are built from decoded codes, so FAISS's graph is too. Queries are searched one by one, because the
    entry points of a graph are random numbers.
    """
    raw = codebook.new_faiss()
    if is_graph(codebook):
        references = codebook.reconstruct(references)
        faiss.ParameterSpace().set_index_parameter(raw, "efSearch", EF_SEARCH)
    for part in references.split(1 if "LSQ" in codebook.spec else 250):
        raw.add(part.numpy())
    if (ivf := faiss.try_extract_index_ivf(raw)) is not None:
        ivf.nprobe = PROBES
    squared, ids = raw.search(queries.numpy(), k)
    return np.sqrt(np.maximum(squared, 0)), ids


def assert_same(ours: tuple, theirs: tuple) -> None:
    """Compare distances, and references except those with equal distances, whose order is arbitrary."""
    found = theirs[1] >= 0
    np.testing.assert_array_equal(ours[1] >= 0, found)
    np.testing.assert_allclose(ours[0][found], theirs[0][found], atol=1e-3)
    apart = np.abs(np.diff(theirs[0], axis=1)) > 1e-4
    unique = found & np.pad(apart, ((0, 0), (1, 0)), constant_values=True)
    unique[:, :-1] &= apart
    unique[:, -1] = False  # the next one may have the same distance
    np.testing.assert_array_equal(ours[1][unique], theirs[1][unique])
    assert unique.any()


def test_search_equals_faiss(codebook: Codebook) -> None:
    references, queries = random_descriptors(codebook, 500, 1), random_descriptors(codebook, 30, 2)
    index = filled(codebook, references, np.arange(500))
    assert len(index) == 500
    assert_same(index.search(queries, 6, PROBES), by_faiss(codebook, references, queries, 6))


def test_search_equals_faiss_after_removals_and_additions(codebook: Codebook) -> None:
    references, queries = random_descriptors(codebook, 200, 3), random_descriptors(codebook, 30, 4)
    index = filled(codebook, references[:150], 1000 + np.arange(150))
    index.search(queries, 1)
    index.remove(np.append(1000 + np.arange(0, 150, 2), 7))
    assert len(index) == 75
    index.add(codebook.encode(references[150:]), 1150 + np.arange(50))
    index = FaissIndex(codebook, index.to_bytes())
    remaining = np.append(np.arange(1, 150, 2), np.arange(150, 200))
    distances, ids = index.search(queries, 200, 16)
    assert set(ids[ids >= 0].tolist()) == set((1000 + remaining).tolist())
    assert is_graph(codebook) or (ids[:, :125] >= 0).all()  # a graph search may not reach every reference
    expected = FaissIndex(codebook)
    for part in (remaining[:75], remaining[75:]):
        expected.add(codebook.encode(references[torch.from_numpy(part)]), 1000 + part)
    assert_same((distances, ids), expected.search(queries, 200, 16))


def test_a_graph_over_rabitq_finds_the_same_references() -> None:
    """The distances are those to RaBitQ codes, not to decoded descriptors."""
    results = []
    for spec in ("HNSW16,RaBitQ", "RaBitQ"):
        book = train(spec)
        index = filled(book, descriptors(500, 1), np.arange(500))
        index.remove(np.arange(0, 500, 5))
        index = FaissIndex(book, index.to_bytes())
        results.append(index.search(descriptors(500, 1) + 0.2 * descriptors(500, 2), 1))
    (distances, ids), (true_distances, true_ids) = results
    same = ids == true_ids
    assert same.mean() > 0.95
    np.testing.assert_allclose(distances[same], true_distances[same], atol=1e-4)


def test_a_graph_finds_the_k_nearest() -> None:
    book, references = train("HNSW16,PQ8x4"), descriptors(3000, 1)
    index = filled(book, references, np.arange(3000))
    among = faiss.IndexFlatL2(32)
    among.add(book.reconstruct(references).numpy())
    distances, _ = index.search(references, 1)
    np.testing.assert_allclose(distances**2, among.search(references.numpy(), 1)[0], atol=1e-4)
    assert (index.search(references[:50], 1000)[1] >= 0).all()


def test_all_cells_can_be_probed_along_a_graph() -> None:
    book = train("IVF256_HNSW8,SQ8")
    index = filled(book, descriptors(1000, 1), np.arange(1000))
    assert (index.search(descriptors(20, 2), 1000)[1] >= 0).all()


def test_an_index_is_restored_from_its_bytes(codebook: Codebook) -> None:
    references = random_descriptors(codebook, 100, 4)
    index = filled(codebook, references, np.arange(100))
    again = FaissIndex(codebook, index.to_bytes())
    assert len(again) == 100
    for ours, theirs in zip(again.search(references, 3), index.search(references, 3), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_larger_indexes_probe_fewer_cells_by_default(codebook: Codebook, monkeypatch: pytest.MonkeyPatch) -> None:
    index = FaissIndex(codebook)
    cells = index.default_nprobe()
    assert cells == (16 if codebook.has_cells else 1)
    index.add(codebook.encode(random_descriptors(codebook, 1000, 5)), np.arange(1000))
    assert index.default_nprobe() == cells  # all cells of a small index
    monkeypatch.setattr("homing.indexes.base.DEFAULT_CODES_SCANNED", 250)
    assert index.default_nprobe() == max(1, cells // 4)


@pytest.mark.parametrize(
    ("spec", "size"),
    [("PQ8x4fs", 4), ("IVF16,PQ8x4fs", 4), ("PCA16,LSH", 2), ("IVF16,Flat", 128), ("HNSW8,PQ8x4", 4 + 4 * 16)],
)
def test_bytes_per_reference(spec: str, size: int) -> None:
    assert FaissIndex(train(spec)).code_size == size
