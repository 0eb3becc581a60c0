"""Concurrent use of an index."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from tests.conftest import descriptors, train

from homing.indexes import FaissIndex


def test_snapshots_are_consistent_while_another_thread_changes_the_index() -> None:
    book = train("IVF4,PQ8x4")
    codes = np.tile(book.encode(descriptors(300)), (300, 1))
    index, done = FaissIndex(book), threading.Event()
    index.add(codes[:1], np.array([-1]))

    def read() -> None:
        while not done.is_set():
            ids, codes = index.contents()
            assert len(np.unique(ids)) == len(ids) == len(codes)
            assert len(np.unique(codes, axis=0)) <= 300

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        for round_ in range(12):
            index.add(codes, round_ * len(codes) + np.arange(len(codes)))
            if round_ % 4 == 3:
                index.remove(np.arange(0, (round_ + 1) * len(codes), 2))
        done.set()
        reader.result()


def test_concurrent_searches_keep_their_own_probes_and_k() -> None:
    book, rows = train("IVF4,PQ8x4"), descriptors(300)
    index = FaissIndex(book)
    index.add(book.encode(rows), np.arange(300))
    expected = {probes: index.search(rows[:50], 10 * probes, probes) for probes in (1, 2, 3, 4)}

    def search(round_: int) -> None:
        probes = round_ % 4 + 1
        for got, wanted in zip(index.search(rows[:50], 10 * probes, probes), expected[probes], strict=True):
            np.testing.assert_array_equal(got, wanted)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(search, range(200)))
