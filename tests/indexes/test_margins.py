"""Cells chosen by margin, against NumPy that goes through all centres and all codes."""

import numpy as np
import pytest
import torch
from tests.conftest import descriptors, train

from homing.codebooks import Codebook
from homing.errors import HomingError
from homing.indexes import FaissIndex
from homing.indexes import faiss as engine

SPECS = ["IVF16,PQ4x6", "OPQ4,IVF16,PQ4x6", "PCA16,IVF16,Flat", "IVF16,SQ8", "IVF16,RQ4x4", "IVF16_HNSW8,PQ4x6"]
COUNT = 500


def filled(spec: str) -> tuple[Codebook, FaissIndex, torch.Tensor]:
    book, references = train(spec), descriptors(COUNT, 1)
    index = FaissIndex(book)
    index.add(book.encode(references), np.arange(COUNT))
    return book, index, references


def cells_by_numpy(book: Codebook, queries: torch.Tensor, margin: float, most: int = 64) -> list[set[int]]:
    """The cells to look into, query by query."""
    ivf = book.quantiser.ivf
    centres, turned = ivf.quantizer.reconstruct_n(0, ivf.nlist), book.turn(queries)
    squared = ((turned[:, None] - centres[None]) ** 2).sum(axis=2)
    chosen = []
    for row in squared:
        order = np.argsort(row)[:most]
        chosen.append({int(cell) for cell in order if row[cell] <= row.min() + margin})
    return chosen


@pytest.mark.parametrize("margin", [0.0, 0.05, 0.2, 10.0])
@pytest.mark.parametrize("spec", SPECS)
def test_what_lies_in_the_cells_within_a_margin_is_found(spec: str, margin: float) -> None:
    book, index, references = filled(spec)
    queries = descriptors(40, 2)
    distances, ids = index.search(queries, 5, margin=margin)
    looked_at = index.looked_at(queries, margin=margin)
    chosen = cells_by_numpy(book, queries, margin)
    assert margin != 0.05 or len({len(cells) for cells in chosen}) > 1  # some queries look into more cells than others
    home, behind = book.cells(references).numpy(), book.turn(book.reconstruct(references))
    for place, (query, cells) in enumerate(zip(book.turn(queries), chosen, strict=True)):
        inside = np.flatnonzero(np.isin(home, list(cells)))
        apart = np.linalg.norm(behind[inside] - query, axis=1)
        nearest = np.sort(apart)[:5]
        np.testing.assert_allclose(distances[place, : len(nearest)], nearest, atol=1e-3)
        assert (ids[place, len(nearest) :] == -1).all()
        assert set(ids[place, : len(nearest)].tolist()) <= set(inside.tolist())
        assert looked_at[place] == len(inside)


def test_no_more_cells_than_the_cap_are_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine.MOST_CELLS == 64
    monkeypatch.setattr(engine, "MOST_CELLS", 3)
    book, index, references = filled("IVF16,PQ4x6")
    queries, home = descriptors(20, 2), book.cells(references).numpy()
    counts = [np.isin(home, list(cells)).sum() for cells in cells_by_numpy(book, queries, 10.0, most=3)]
    np.testing.assert_array_equal(index.looked_at(queries, margin=10.0), counts)


def test_probes_count_the_codes_of_their_cells() -> None:
    book, index, references = filled("OPQ4,IVF16,PQ8x4fs")
    own = book.cells(references).numpy()
    np.testing.assert_array_equal(index.looked_at(references, 1), np.bincount(own, minlength=16)[own])
    np.testing.assert_array_equal(index.looked_at(references[:3], 16), [COUNT] * 3)
    several = references[:60].view(20, 3, -1)
    np.testing.assert_array_equal(
        index.looked_at(several, margin=0.1), index.looked_at(references[:60], margin=0.1).reshape(20, 3).sum(axis=1)
    )


def test_a_search_by_margin_leaves_the_next_one_by_probes_as_it_was() -> None:
    _, index, references = filled("IVF16,PQ4x6")
    before = index.search(references[:20], 5, 2)
    index.search(references[:20], 5, margin=1.0)
    for ours, theirs in zip(index.search(references[:20], 5, 2), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_what_makes_no_sense_is_refused() -> None:
    _, index, references = filled("IVF16,PQ4x6")
    with pytest.raises(HomingError, match=r"by probes or by a margin, got both: 4 and 0\.1"):
        index.search(references, 5, 4, 0.1)
    for margin in (-0.1, float("nan")):
        with pytest.raises(HomingError, match="a margin is a squared distance, 0 or more"):
            index.search(references, 5, margin=margin)
    for spec in ("PQ4x6", "HNSW8,PQ8x4"):
        with pytest.raises(HomingError, match=f"'{spec}' has no cells to choose from; search without a margin"):
            filled(spec)[1].search(references, 5, margin=0.1)
