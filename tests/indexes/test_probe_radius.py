"""Search by probe radius, compared with NumPy over all centroids and codes."""

import numpy as np
import pytest
import torch
from tests.conftest import descriptors, train

from homing.codebooks import Codebook
from homing.errors import HomingError
from homing.indexes import FaissIndex, faiss as engine

SPECS = ["IVF16,PQ4x6", "OPQ4,IVF16,PQ4x6", "PCA16,IVF16,Flat", "IVF16,SQ8", "IVF16,RQ4x4", "IVF16_HNSW8,PQ4x6"]
COUNT = 500


def filled(spec: str) -> tuple[Codebook, FaissIndex, torch.Tensor]:
    book, references = train(spec), descriptors(COUNT, 1)
    index = FaissIndex(book)
    index.add(book.encode(references), np.arange(COUNT))
    return book, index, references


def cells_by_numpy(book: Codebook, queries: torch.Tensor, probe_radius: float, most: int = 64) -> list[set[int]]:
    """The cells to probe for each query."""
    ivf = book.quantizer.ivf
    centers, transformed = ivf.quantizer.reconstruct_n(0, ivf.nlist), book.transform(queries)
    squared = ((transformed[:, None] - centers[None]) ** 2).sum(axis=2)
    chosen = []
    for row in squared:
        order = np.argsort(row)[:most]
        chosen.append({int(cell) for cell in order if row[cell] <= row.min() + probe_radius})
    return chosen


@pytest.mark.parametrize("probe_radius", [0.0, 0.05, 0.2, 10.0])
@pytest.mark.parametrize("spec", SPECS)
def test_references_in_cells_within_the_probe_radius_are_found(spec: str, probe_radius: float) -> None:
    book, index, references = filled(spec)
    queries = descriptors(40, 2)
    distances, ids = index.search(queries, 5, probe_radius=probe_radius)
    scanned = index.codes_scanned(queries, probe_radius=probe_radius)
    chosen = cells_by_numpy(book, queries, probe_radius)
    assert probe_radius != 0.05 or len({len(cells) for cells in chosen}) > 1  # queries differ in the number of cells
    own_cells, reconstructed = book.cells(references).numpy(), book.transform(book.reconstruct(references))
    for i, (query, cells) in enumerate(zip(book.transform(queries), chosen, strict=True)):
        inside = np.flatnonzero(np.isin(own_cells, list(cells)))
        apart = np.linalg.norm(reconstructed[inside] - query, axis=1)
        nearest = np.sort(apart)[:5]
        np.testing.assert_allclose(distances[i, : len(nearest)], nearest, atol=1e-3)
        assert (ids[i, len(nearest) :] == -1).all()
        assert set(ids[i, : len(nearest)].tolist()) <= set(inside.tolist())
        assert scanned[i] == len(inside)


def test_the_number_of_probed_cells_is_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine.MAX_CELLS == 64
    monkeypatch.setattr(engine, "MAX_CELLS", 3)
    book, index, references = filled("IVF16,PQ4x6")
    queries, own_cells = descriptors(20, 2), book.cells(references).numpy()
    counts = [np.isin(own_cells, list(cells)).sum() for cells in cells_by_numpy(book, queries, 10.0, most=3)]
    np.testing.assert_array_equal(index.codes_scanned(queries, probe_radius=10.0), counts)


def test_codes_scanned_equals_the_sizes_of_the_probed_cells() -> None:
    book, index, references = filled("OPQ4,IVF16,PQ8x4fs")
    own = book.cells(references).numpy()
    np.testing.assert_array_equal(index.codes_scanned(references, 1), np.bincount(own, minlength=16)[own])
    np.testing.assert_array_equal(index.codes_scanned(references[:3], 16), [COUNT] * 3)
    several = references[:60].view(20, 3, -1)
    np.testing.assert_array_equal(
        index.codes_scanned(several, probe_radius=0.1),
        index.codes_scanned(references[:60], probe_radius=0.1).reshape(20, 3).sum(axis=1),
    )


def test_a_search_by_probe_radius_does_not_affect_later_searches() -> None:
    _, index, references = filled("IVF16,PQ4x6")
    before = index.search(references[:20], 5, 2)
    index.search(references[:20], 5, probe_radius=1.0)
    for ours, theirs in zip(index.search(references[:20], 5, 2), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_invalid_arguments_are_refused() -> None:
    _, index, references = filled("IVF16,PQ4x6")
    with pytest.raises(HomingError, match=r"choose probes or a probe radius, got both: 4 and 0\.1"):
        index.search(references, 5, 4, 0.1)
    for probe_radius in (-0.1, float("nan")):
        with pytest.raises(HomingError, match="a probe radius is a squared distance of at least 0"):
            index.search(references, 5, probe_radius=probe_radius)
    for spec in ("PQ4x6", "HNSW8,PQ8x4"):
        with pytest.raises(HomingError, match=f"'{spec}' has no cells; search without a probe radius"):
            filled(spec)[1].search(references, 5, probe_radius=0.1)
