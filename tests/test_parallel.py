"""Ordered maps in threads and processes: order, bounds and errors."""

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest

from homing._io.parallel import MIN_ITEMS_FOR_PROCESSES, parallel_map, pipelined_map, prefetch_map
from homing.errors import HomingError


def double(number: int, plus: int = 0) -> int:
    if number == 13_000:
        raise ValueError("thirteen thousand")
    return 2 * number + plus


@pytest.mark.parametrize("count", [5, MIN_ITEMS_FOR_PROCESSES + 7])
def test_results_come_in_order(count: int) -> None:
    assert list(parallel_map(partial(double, plus=1), list(range(count)))) == [
        2 * number + 1 for number in range(count)
    ]


def test_an_error_is_raised() -> None:
    with pytest.raises(ValueError, match="thirteen"):
        list(parallel_map(double, list(range(12_990, 13_990 + MIN_ITEMS_FOR_PROCESSES))))


def die(number: int) -> int:
    os._exit(number)


def test_a_killed_worker_gets_one_line() -> None:
    with pytest.raises(HomingError, match="a worker was killed"):
        list(parallel_map(die, list(range(MIN_ITEMS_FOR_PROCESSES))))


def test_the_number_of_started_items_is_bounded() -> None:
    started = []
    results = prefetch_map(started.append, range(1000), threads=3)
    next(results)
    results.close()
    assert len(started) <= 4


def test_pipelined_map_works_in_order_while_it_fetches_the_next_items() -> None:
    started, fetched = threading.Event(), threading.Event()
    busy: list[int] = []

    def items() -> Iterator[int]:
        yield 0
        assert started.wait(10)  # the first item is being processed
        fetched.set()
        yield from range(1, 6)

    def work(item: int) -> int:
        busy.append(item)
        started.set()
        assert fetched.wait(10)  # the next item was fetched at the same time
        assert len(busy) == 1
        busy.clear()
        return 2 * item

    assert list(pipelined_map(work, items())) == [0, 2, 4, 6, 8, 10]


def test_pipelined_map_raises_errors() -> None:
    def work(item: int) -> float:
        return 1 / item

    with pytest.raises(ZeroDivisionError):
        list(pipelined_map(work, [1, 0, 2]))


def test_persistent_threads_are_the_same_in_every_call() -> None:
    def used() -> set[int]:
        return set(prefetch_map(lambda _: threading.get_ident(), range(20), threads=1, persistent=True))

    assert used() == used() <= {thread.ident for thread in threading.enumerate()}


def test_closing_the_iterator_stops_persistent_threads() -> None:
    started = []

    def work(number: int) -> int:
        started.append(number)
        time.sleep(0.05)
        return number

    results = prefetch_map(work, range(100), threads=2, persistent=True)
    assert next(results) == 0
    results.close()
    assert list(prefetch_map(str, range(3), threads=2, persistent=True)) == ["0", "1", "2"]
    assert len(started) < 6


def test_a_worker_may_garbage_collect_abandoned_results() -> None:
    cleared = threading.Event()

    def work(number: int) -> int:
        if number:
            cleared.wait(1)
            gc.collect()  # a garbage collection can happen anywhere
        return number

    results = prefetch_map(work, range(3), threads=2, persistent=True)
    next(results)
    circle = [results]
    circle.append(circle)
    del results, circle
    cleared.set()
    assert list(prefetch_map(double, range(3), threads=2, persistent=True)) == [0, 2, 4]


# Ctrl-C while the main thread acquires a lock of the pool: an exception at this point would leave it locked.
INTERRUPT_WHILE_LOCKING = """
import os, signal, sys, threading
from homing._io.parallel import prefetch_map

enter, pressed = threading.Condition.__enter__, []

def press(condition):
    entered = enter(condition)
    taking = sys._getframe(1).f_code is threading.Semaphore.acquire.__code__
    if taking and threading.current_thread() is threading.main_thread() and not pressed:
        pressed.append(True)
        os.kill(os.getpid(), signal.SIGINT)
    return entered

signal.signal(signal.SIGINT, signal.default_int_handler)
results = prefetch_map(abs, range(100), threads=2)
next(results)
threading.Condition.__enter__ = press
try:
    for result in results:
        print(result)
except KeyboardInterrupt:
    print("interrupted", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def test_ctrl_c_leaves_no_lock_of_the_pool_locked() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT_WHILE_LOCKING], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("interrupted True\n", 0)
