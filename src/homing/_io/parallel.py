"""Ordered maps in threads and processes, with a bounded number of results in memory."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from functools import cache, partial
from itertools import islice
from multiprocessing import get_all_start_methods, get_context
from types import FrameType
from typing import Any, TypeVar

from homing.errors import HomingError

Item = TypeVar("Item")
Result = TypeVar("Result")

MIN_ITEMS_FOR_PROCESSES = 2000  # items from which on processes, which take seconds to start, pay off
CHUNK_SIZE = 16  # items that travel together: one by one they would spend longer on the way than in the work


def prefetch_map(
    work: Callable[[Item], Result], items: Iterable[Item], *, threads: int | None = None, persistent: bool = False
) -> Iterator[Result]:
    """Like map, in one thread per core or so many; at most one result per thread waits, so memory stays bounded.

    `persistent` threads are the same in every call with as many: for work that keeps state by thread, as PyTorch does
    on a GPU. Closing the iterator does not wait for running work.
    """
    threads = threads or cores()
    pool = nullcontext(_persistent_pool(threads)) if persistent else _ContextThreadPool(threads)
    yield from _prefetch(pool, work, items, max_pending=threads)


def pipelined_map(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Like map, one after the other in one thread: the next items come while it works on those before."""
    yield from _prefetch(_ContextThreadPool(1), work, items, max_pending=2)


def parallel_map(work: Callable[[Item], Result], items: list[Item]) -> Iterator[Result]:
    """The same for short work on many items, which threads would spend waiting for each other: in processes.

    The work is a function of a module, its items and results are things that can be pickled.
    """
    if len(items) < MIN_ITEMS_FOR_PROCESSES:
        yield from prefetch_map(work, items)
        return
    chunks = (items[start : start + CHUNK_SIZE] for start in range(0, len(items), CHUNK_SIZE))
    module = (work.func if isinstance(work, partial) else work).__module__
    for results in process_map(partial(_map_chunk, work), chunks, modules=[module]):
        yield from results


def process_map(
    work: Callable[[Item], Result], items: Iterable[Item], *, modules: Sequence[str], processes: int | None = None
) -> Iterator[Result]:
    """Like map, in so many processes, or one per core. All must be things that can be pickled.

    The work travels once to each process. The modules it needs, its own among them, are imported once for all.
    """
    processes = processes or cores()
    forked = "forkserver" in get_all_start_methods()
    context = get_context("forkserver" if forked else "spawn")
    if forked:
        context.set_forkserver_preload([*modules])
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_init_worker, initargs=(work,))
    try:
        yield from _prefetch(pool, _call_work, items, max_pending=2 * processes)
    except BrokenExecutor as error:
        raise HomingError("a worker was killed, probably for lack of memory; free some and try again") from error


class _ContextThreadPool(ThreadPoolExecutor):
    """Threads that run each call in a copy of the caller's context."""

    def submit(self, work: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """In a copy of the context: it can be entered only once at a time."""
        return super().submit(copy_context().run, partial(work, *args, **kwargs))


@cache
def _persistent_pool(threads: int) -> _ContextThreadPool:
    return _ContextThreadPool(threads)


def _prefetch(
    executor: AbstractContextManager[Executor],
    work: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    max_pending: int,
) -> Iterator[Result]:
    rest = iter(items)
    futures: deque[Future[Result]] = deque()
    with executor as pool:
        try:
            with _interrupts_deferred():
                futures.extend(pool.submit(work, item) for item in islice(rest, max_pending))
            while futures:
                with _interrupts_deferred():
                    result = futures.popleft().result()
                    futures.extend(pool.submit(work, item) for item in islice(rest, 1))
                yield result
        finally:
            for future in futures:
                future.cancel()


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Ctrl-C is heard at once, but raised when this is left: inside of a pool it may leave a lock shut for ever."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    raised: list[KeyboardInterrupt] = []

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt as interrupt:
            raised.append(interrupt)

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is on_interrupt:  # what heard it may have put another in its place
            signal.signal(signal.SIGINT, before)
    if raised:
        raise raised[0]


def _map_chunk(work: Callable[[Item], Result], chunk: list[Item]) -> list[Result]:
    return [work(item) for item in chunk]


_work: Callable[[Any], Any]  # of this process, where it is a worker


def _init_worker(work: Callable[[Any], Any]) -> None:
    """A worker leaves interrupts and messages to its parent, and cores to the other workers."""
    import torch

    global _work
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.filterwarnings("ignore", module="PIL")
    torch.set_num_threads(1)


def _call_work(item: Any) -> Any:
    return _work(item)


def cores() -> int:
    """The number of CPU cores."""
    return os.cpu_count() or 1
