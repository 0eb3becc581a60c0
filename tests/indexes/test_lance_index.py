"""Lance indexes, compared with FAISS after additions, removals and compaction."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.conftest import descriptors, train

from homing.codebooks import Codebook
from homing.errors import CodebookError
from homing.indexes import FaissIndex, LanceIndex
from homing.indexes.lance import (
    CODE,
    VECTOR,
    cells_differ,
    check_family,
    drop_index,
    load_lance,
    refresh_index,
    to_list_column,
    unindexed_rows,
)

QUERIES = descriptors(80, seed=9)  # searched for in five ways after each of eight changes
OPTIONS: list[dict[str, Any]] = [{"probes": 1}, {"probes": 3}, {"probes": 8}, {"probe_radius": 0.2}, {}]


class Both:
    """The same references in a dataset and in FAISS."""

    def __init__(self, spec: str, where: Path) -> None:
        self.book: Codebook = train(spec)
        self.faiss = FaissIndex(self.book)
        self.uri, self.count = str(where), 0

    @property
    def dataset(self) -> Any:
        return load_lance().dataset(self.uri)

    def add(self, count: int) -> None:
        new = descriptors(count, seed=self.count + 1)
        codes = self.book.encode(new)
        rows = pa.table({CODE: to_list_column(codes), VECTOR: to_list_column(self.book.transform(new))})
        mode = "append" if self.count else "create"
        load_lance().write_dataset(rows, self.uri, mode=mode, enable_stable_row_ids=True)
        self.faiss.add(codes, np.arange(self.count, self.count + count) + 1)
        self.count += count

    def remove(self, ids: range) -> None:
        self.dataset.delete(f"_rowid >= {ids.start - 1} AND _rowid < {ids.stop - 1}")
        self.faiss.remove(np.array(ids))

    def index(self, *, in_memory: bool) -> LanceIndex:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("homing.indexes.lance.MAX_CODES_IN_MEMORY", len(self.faiss) if in_memory else 0)
            return LanceIndex(self.book, self.dataset)

    def assert_same_as_faiss(self, tail: int) -> None:
        for index in (self.index(in_memory=False), self.index(in_memory=True)):
            assert (len(index), unindexed_rows(index._dataset)) == (len(self.faiss), tail)
            for options in OPTIONS:
                distances, ids = index.search(QUERIES, 10, **options)
                expected, same = self.faiss.search(QUERIES, 10, **options)
                found = same >= 0
                assert np.array_equal(ids >= 0, found)
                np.testing.assert_allclose(distances[found], expected[found], atol=2e-6)
                # References with equal distances, up to rounding, may be swapped.
                swapped = (ids != same) & found
                assert np.abs(np.diff(expected, axis=1))[swapped[:, 1:] | swapped[:, :-1]].max(initial=0) < 2e-6


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["IVF8,PQ4x8", "OPQ4,IVF8,PQ4x8", "IVF300,PQ8x8"])
def test_lance_equals_faiss_after_every_change(spec: str, tmp_path: Path) -> None:
    both = Both(spec, tmp_path / "d.lance")
    both.add(1000)
    both.assert_same_as_faiss(tail=1000)
    refresh_index(both.dataset, both.book)
    both.assert_same_as_faiss(tail=0)
    both.add(500)
    both.assert_same_as_faiss(tail=500)
    both.remove(range(901, 1101))  # both indexed and unindexed rows
    both.assert_same_as_faiss(tail=400)
    refresh_index(both.dataset, both.book)
    both.assert_same_as_faiss(tail=0)
    both.dataset.optimize.compact_files()
    both.assert_same_as_faiss(tail=0)
    both.add(2000)  # more than before, so the index is rebuilt
    refresh_index(both.dataset, both.book)
    both.assert_same_as_faiss(tail=0)
    assert not cells_differ(both.dataset, both.book)
    drop_index(both.dataset)
    both.assert_same_as_faiss(tail=3300)


def test_query_variants_are_merged_as_in_faiss(tmp_path: Path) -> None:
    both = Both("IVF8,PQ4x8", tmp_path / "d.lance")
    both.add(600)
    refresh_index(both.dataset, both.book)
    both.add(300)
    several = QUERIES[:60].reshape(20, 3, -1)
    distances, ids = both.index(in_memory=False).search(several, 5, probes=3)
    expected, same = both.faiss.search(several, 5, probes=3)
    np.testing.assert_allclose(distances, expected, atol=2e-6)
    assert (ids == same).mean() > 0.99


def test_small_datasets_are_searched_in_memory(tmp_path: Path) -> None:
    both = Both("IVF8,PQ4x8", tmp_path / "d.lance")
    both.add(600)
    refresh_index(both.dataset, both.book)
    small = LanceIndex(both.book, both.dataset)
    shutil.rmtree(both.uri)
    distances, ids = small.search(QUERIES, 5)
    expected, same = both.faiss.search(QUERIES, 5)
    assert np.array_equal(distances, expected) and np.array_equal(ids, same)


def test_an_index_with_retrained_cells_is_detected(tmp_path: Path) -> None:
    both = Both("IVF8,PQ4x8", tmp_path / "d.lance")
    both.add(1000)
    assert not cells_differ(both.dataset, both.book), "there is no index yet"
    refresh_index(both.dataset, both.book)
    both.dataset.optimize.optimize_indices(retrain=True)
    assert cells_differ(both.dataset, both.book)


def test_an_empty_dataset_finds_nothing(tmp_path: Path) -> None:
    both = Both("IVF8,PQ4x8", tmp_path / "d.lance")
    both.add(3)
    both.remove(range(1, 4))
    _, ids = LanceIndex(both.book, both.dataset).search(QUERIES[:2], 4)
    assert (ids == -1).all()


def test_sampled_ids_are_always_the_same(tmp_path: Path) -> None:
    both = Both("IVF8,PQ4x8", tmp_path / "d.lance")
    both.add(300)
    both.remove(range(1, 101))
    first, second = (LanceIndex(both.book, both.dataset).sample_ids(50, below=1 << 48) for _ in range(2))
    assert np.array_equal(first, second) and len(np.unique(first)) == 50 and first.min() > 100
    assert len(LanceIndex(both.book, both.dataset).sample_ids(1000, below=1 << 48)) == 200


@pytest.mark.parametrize("spec", ["PQ4x8", "IVF8,Flat", "IVF8,PQ8x4", "PCA16,IVF8,PQ4x8"])
def test_codebooks_unsupported_by_lance_are_refused(spec: str) -> None:
    with pytest.raises(CodebookError, match="is not supported by Lance"):
        check_family(train(spec))
