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

MIN_ITEMS_FOR_PROCESSES = 2000  # below it, starting processes, which takes seconds, costs more than it saves
CHUNK_SIZE = 16  # items per message; single items would take longer to send than to process


def prefetch_map(
    work: Callable[[Item], Result], items: Iterable[Item], *, threads: int | None = None, persistent: bool = False
) -> Iterator[Result]:
    """Like map, in `threads` threads, by default one per core. Memory is bounded: at most one result per thread waits.

    `persistent` threads are reused by later calls with as many threads: for work that keeps state per thread, such as
    PyTorch on a GPU. Closing the iterator does not wait for running work.
    """
    threads = threads or cores()
    pool = nullcontext(_persistent_pool(threads)) if persistent else _ContextThreadPool(threads)
    yield from _prefetch(pool, work, items, max_pending=threads)


def thread_map(work: Callable[[Item], Result], items: Sequence[Item], *, threads: int) -> list[Result]:
    """The results of all items, in up to `threads` threads; a single item needs none."""
    threads = min(threads, len(items))
    return list(prefetch_map(work, items, threads=threads) if threads > 1 else map(work, items))


def pipelined_map(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Like map, in one background thread, while the caller produces the next items."""
    yield from _prefetch(_ContextThreadPool(1), work, items, max_pending=2)


def parallel_map(work: Callable[[Item], Result], items: list[Item]) -> Iterator[Result]:
    """Like map, in processes if there are many items: for short work that threads would do one at a time.

    The work is a module-level function; items and results can be pickled.
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
    """Like map, in `processes` processes, by default one per core. Work, items and results must be picklable.

    The work is sent once to each process. `modules`, including the module of the work, are imported once for all.
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
        """Submit a call in a copy of the context, because a context can be entered only once at a time."""
        return super().submit(copy_context().run, partial(work, *args, **kwargs))


_persistent_pool = cache(_ContextThreadPool)


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
    """Delay KeyboardInterrupt until the end of the block: inside a pool it could leave a lock held forever."""
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
        if signal.getsignal(signal.SIGINT) is on_interrupt:  # the handler may have been replaced meanwhile
            signal.signal(signal.SIGINT, before)
    if raised:
        raise raised[0]


def _map_chunk(work: Callable[[Item], Result], chunk: list[Item]) -> list[Result]:
    return [work(item) for item in chunk]


_work: Callable[[Any], Any]  # set in worker processes


def _init_worker(work: Callable[[Any], Any]) -> None:
    """Set up a worker: no interrupts, no warnings of Pillow, one thread."""
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
