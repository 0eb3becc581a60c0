"""Record references and releases in batches."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import descriptors, train

from homing.collection import Collection
from homing.collection.references import NewPhotos, StoredRelease

ROWS = descriptors(12, seed=3)


def new(opened: Collection, positions: list[int]) -> NewPhotos:
    """New photos whose hashes and sources are their positions in ROWS."""
    codes = opened.codebook.encode(ROWS)[positions]
    return NewPhotos([f"{n:064x}" for n in positions], [f"/{n}.jpg" for n in positions], codes, ROWS[positions].numpy())


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Collection]:
    """A new collection."""
    with Collection.create(tmp_path / "c", codebook=train("IVF4,PQ8x8")) as opened:
        yield opened


def assert_recorded(opened: Collection, ids: list[int], positions: list[int]) -> None:
    """Check that exactly these ids are recorded, with the photos at these positions."""
    catalog = opened.storage
    ((found, codes),) = catalog.codes()
    assert found.tolist() == ids
    assert np.array_equal(codes, opened.codebook.encode(ROWS)[positions])
    assert [catalog.find(f"{n:064x}") for n in positions] == ids
    assert [catalog.source_and_state(number)[0] for number in ids] == [f"/{n}.jpg" for n in positions]
    vectors = catalog.descriptors(np.array(ids))
    for number, position in zip(ids, positions, strict=True):
        assert np.array_equal(vectors[number], ROWS[position].numpy().astype(np.float16)[None])


def test_known_photos_of_a_batch_are_skipped(empty: Collection) -> None:
    assert empty.record(new(empty, [0, 1, 2])) == [1, 2, 3]
    assert empty.record(new(empty, [3, 1, 4, 3, 5])) == [4, None, 5, None, 6]
    assert_recorded(empty, [1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5])


def test_the_last_release_is_found_even_within_a_second(empty: Collection) -> None:
    empty.record(new(empty, [0]))
    catalog = empty.storage
    for name in ("second", "first", "second"):  # in any order of their hashes, new or known
        planned = [StoredRelease(1, "/out/0.jpg", "activated", name, "recipe", 44.0, 0.99, 8.0, None)]
        catalog.plan_releases(planned)
        catalog.confirm_releases(planned)
        time.sleep(0.003)
        last = catalog.last_release(1)
        assert last is not None and last.sha256 == name


def test_record_empty_and_strided_batches(empty: Collection) -> None:
    assert empty.record(new(empty, [])) == []
    all_of_them = new(empty, list(range(12)))
    every_second = (
        each[::2] for each in (all_of_them.hashes, all_of_them.sources, all_of_them.codes, all_of_them.descriptors)
    )
    assert empty.record(NewPhotos(*every_second)) == [1, 2, 3, 4, 5, 6]
    assert_recorded(empty, [1, 2, 3, 4, 5, 6], [0, 2, 4, 6, 8, 10])


def test_a_batch_with_too_few_descriptors_is_not_recorded(empty: Collection) -> None:
    empty.record(new(empty, [0]))
    whole = new(empty, [1, 2, 3])
    with pytest.raises(ValueError, match="shorter"):
        empty.record(NewPhotos(whole.hashes, whole.sources, whole.codes, whole.descriptors[:2]))
    assert_recorded(empty, [1], [0])
    assert empty.record(whole) == [2, 3, 4]


def test_a_catalog_keeps_its_page_size(empty: Collection) -> None:
    empty.record(new(empty, [0, 1]))
    empty.close()
    file = empty.path / "catalog.sqlite"
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("PRAGMA page_size").fetchone() == (16384,)
        database.executescript("PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM;")
    with Collection.open(empty.path) as again:
        assert again.record(new(again, [2, 1, 3])) == [3, None, 4]
        assert_recorded(again, [1, 2, 3, 4], [0, 1, 2, 3])
        assert again.check() == []
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("PRAGMA page_size").fetchone() == (4096,)
