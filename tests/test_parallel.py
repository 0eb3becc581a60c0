"""Work ahead: in order, bounded, and errors come out where they belong."""

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest

from homing._parallel import MANY, map_ahead, map_behind, map_many
from homing.errors import HomingError


def double(number: int, plus: int = 0) -> int:
    if number == 13_000:
        raise ValueError("thirteen thousand")
    return 2 * number + plus


@pytest.mark.parametrize("count", [5, MANY + 7])
def test_results_come_in_order(count: int) -> None:
    assert list(map_many(partial(double, plus=1), list(range(count)))) == [2 * number + 1 for number in range(count)]


def test_an_error_comes_out() -> None:
    with pytest.raises(ValueError, match="thirteen"):
        list(map_many(double, list(range(12_990, 13_990 + MANY))))


def die(number: int) -> int:
    os._exit(number)


def test_a_killed_worker_gets_one_line() -> None:
    with pytest.raises(HomingError, match="a worker was killed"):
        list(map_many(die, list(range(MANY))))


def test_no_more_is_begun_than_needed() -> None:
    begun = []
    results = map_ahead(begun.append, range(1000), threads=3)
    next(results)
    results.close()
    assert len(begun) <= 4


def test_what_is_mapped_behind_is_done_one_by_one_in_order_while_the_next_come() -> None:
    begun, taken = threading.Event(), threading.Event()
    busy: list[int] = []

    def items() -> Iterator[int]:
        yield 0
        assert begun.wait(10)  # the first is being worked on
        taken.set()
        yield from range(1, 6)

    def work(item: int) -> int:
        busy.append(item)
        begun.set()
        assert taken.wait(10)  # the next came meanwhile
        assert len(busy) == 1
        busy.clear()
        return 2 * item

    assert list(map_behind(work, items())) == [0, 2, 4, 6, 8, 10]


def test_what_fails_behind_is_raised() -> None:
    def work(item: int) -> float:
        return 1 / item

    with pytest.raises(ZeroDivisionError):
        list(map_behind(work, [1, 0, 2]))


def test_lasting_threads_are_the_same_in_every_call() -> None:
    def used() -> set[int]:
        return set(map_ahead(lambda _: threading.get_ident(), range(20), threads=1, lasting=True))

    assert used() == used() <= {thread.ident for thread in threading.enumerate()}


def test_who_stops_asking_lasting_threads_gives_them_nothing_more_to_do() -> None:
    begun = []

    def work(number: int) -> int:
        begun.append(number)
        time.sleep(0.05)
        return number

    results = map_ahead(work, range(100), threads=2, lasting=True)
    assert next(results) == 0
    results.close()
    assert list(map_ahead(str, range(3), threads=2, lasting=True)) == ["0", "1", "2"]
    assert len(begun) < 6


def test_results_that_nobody_asks_for_any_more_may_be_cleared_away_by_a_worker() -> None:
    cleared = threading.Event()

    def work(number: int) -> int:
        if number:
            cleared.wait(1)
            gc.collect()  # here, as it may happen anywhere
        return number

    results = map_ahead(work, range(3), threads=2, lasting=True)
    next(results)
    circle = [results]
    circle.append(circle)
    del results, circle
    cleared.set()
    assert list(map_ahead(double, range(3), threads=2, lasting=True)) == [0, 2, 4]


# Ctrl-C while the main thread is just taking a lock of the pool: raised there, nobody would give the lock back.
AT_THE_WORST_MOMENT = """
import os, signal, sys, threading
from homing._parallel import map_ahead

enter, pressed = threading.Condition.__enter__, []

def press(condition):
    entered = enter(condition)
    taking = sys._getframe(1).f_code is threading.Semaphore.acquire.__code__
    if taking and threading.current_thread() is threading.main_thread() and not pressed:
        pressed.append(True)
        os.kill(os.getpid(), signal.SIGINT)
    return entered

signal.signal(signal.SIGINT, signal.default_int_handler)
results = map_ahead(abs, range(100), threads=2)
next(results)
threading.Condition.__enter__ = press
try:
    for result in results:
        print(result)
except KeyboardInterrupt:
    print("interrupted", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def test_ctrl_c_leaves_no_lock_of_the_pool_shut() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_WORST_MOMENT], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("interrupted True\n", 0)
