import faiss
import numpy as np
import pytest
from tests.conftest import descriptors, train

from homing.codebooks import Codebook
from homing.indexes import FaissIndex


@pytest.fixture(
    scope="module",
    params=["IVF16,PQ4x8", "PQ4x8", "OPQ4,PQ4x8", "OPQ4,IVF16,PQ4x8", "IVF16,SQ8", "RQ4x8", "LSH", "IVF16,Flat"],
)
def codebook(request: pytest.FixtureRequest) -> Codebook:
    return train(request.param)


@pytest.mark.parametrize("probes", [1, 4, 16])
def test_answers_as_faiss_itself_does(codebook: Codebook, probes: int) -> None:
    references, queries = descriptors(500, 1), descriptors(30, 2)
    index = FaissIndex(codebook)
    index.add(codebook.encode(references), 1000 + np.arange(500))
    raw = codebook.new_faiss()
    raw.add(references.numpy())
    if (ivf := faiss.try_extract_index_ivf(raw)) is not None:
        ivf.nprobe = probes
    squared, ids = raw.search(queries.numpy(), 5)
    distances, ours = index.search(queries, 5, probes)
    np.testing.assert_array_equal(ours, np.where(ids >= 0, ids + 1000, -1))
    np.testing.assert_allclose(distances[ids >= 0], np.sqrt(squared[ids >= 0]), atol=1e-3)


def test_forgets_what_is_removed_and_nothing_else(codebook: Codebook) -> None:
    references = descriptors(200, 3)
    index = FaissIndex(codebook)
    index.add(codebook.encode(references), np.arange(200))
    index.remove(np.arange(0, 200, 2))
    _, ids = index.search(references, 200, 16)
    assert len(index) == 100
    assert {int(number) for number in ids.ravel() if number >= 0} == set(range(1, 200, 2))
    kept = FaissIndex(codebook)
    kept.add(codebook.encode(references[1::2]), np.arange(1, 200, 2))
    np.testing.assert_array_equal(
        np.sort(index.search(references, 3, 16)[0]), np.sort(kept.search(references, 3, 16)[0])
    )


def test_survives_its_bytes(codebook: Codebook) -> None:
    references = descriptors(100, 4)
    index = FaissIndex(codebook)
    index.add(codebook.encode(references), np.arange(100))
    again = FaissIndex(codebook, index.to_bytes())
    for ours, theirs in zip(again.search(references, 3), index.search(references, 3), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_probes_fewer_cells_the_larger_it_is(codebook: Codebook, monkeypatch: pytest.MonkeyPatch) -> None:
    index = FaissIndex(codebook)
    cells = index.fast_probes()
    index.add(codebook.encode(descriptors(1000, 5)), np.arange(1000))
    assert index.fast_probes() == cells  # small: all of them
    monkeypatch.setattr("homing.indexes.faiss.FAST_CODES", 250)
    assert index.fast_probes() == max(1, cells // 4)
