"""The Ray Data pipeline: workers, and batches of photos through stages, with the throughput of each stage."""

from __future__ import annotations

import logging
import math
import os
import pickle
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from homing._imports import load_extra
from homing.collection import Outcome
from homing.collection.outcome import OutcomeCallback
from homing.errors import HomingError

Item = TypeVar("Item")

_NO_WAIT = nullcontext()
_BATCH_SIZE = 16  # photos in a batch
# One is computed while the files of the other are read; both are repeated if the worker is killed.
_BATCHES_PER_WORKER = 2
_CHUNK_SIZE = 200_000  # photos per Ray dataset, which limits the memory of Ray's plan
_CORES_PER_TASK = {"io": 0.25, "cpu": 0.5}  # cores per task on machines with GPUs; waiting for files needs little
_CORES_PER_WORKER = 0.75  # maximum cores per GPU worker, which leaves some for tasks

_PORTS = range(1 << 16)


@dataclass(frozen=True)
class Workers:
    """Number of worker processes, and the cores and GPUs of each."""

    count: int
    cpus: float
    gpus: float

    @property
    def device(self) -> str | None:
        """Device of the network: None for the default GPU, or cpu."""
        return None if self.gpus else "cpu"


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Where a job runs: on this machine, or on the Ray cluster at `address` (`auto`: the one of this machine).

    By default it uses all GPUs, with one worker each, or one worker per core if there are none.
    """

    address: str | None = None
    workers: int | None = None
    gpus: int | None = None

    @contextmanager
    def start(self) -> Iterator[Workers]:
        """Start Ray on this machine, or connect to the cluster, for one job. Uses Ray if it already runs."""
        # Ray's own logs are for developers; usage reports are off unless the user enabled them.
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray = load_extra("ray", "ray")
        load_extra("ray.data", "ray")
        if ray.is_initialized():
            yield self._workers(ray)
            return
        only_here = {} if self.address else {"include_dashboard": False}
        try:
            _check_address(self.address)
            with _mute_stderr():
                ray.init(self.address or "local", logging_level=logging.ERROR, log_to_driver=False, **only_here)
        except (OSError, ValueError, RuntimeError) as error:
            raise HomingError(
                f"cannot connect to Ray at {self.address or 'this machine'}: {str(error).splitlines()[0]}; "
                "check that it runs, and that RAY_AUTH_TOKEN is set if it requires one"
            ) from error
        try:
            yield self._workers(ray)
        finally:
            ray.shutdown()

    def _workers(self, ray: Any) -> Workers:
        available = ray.cluster_resources()
        cpus, most = available.get("CPU", 0.0), int(available.get("GPU", 0))
        gpus = most if self.gpus is None else self.gpus
        if gpus > most:
            raise HomingError(f"{gpus} GPUs requested, {most} available")
        count = self.workers or gpus or max(1, int(cpus))
        if count < gpus:
            raise HomingError(f"each GPU needs a worker: got {count} workers for {gpus} GPUs")
        if cpus < 1:
            raise HomingError(f"at least one core is required, {cpus:g} available")
        most_each = min(_CORES_PER_WORKER, (cpus - _CORES_PER_TASK["cpu"]) / count) if gpus else min(1.0, cpus / count)
        return Workers(count, math.floor(10_000 * most_each) / 10_000, gpus / count)  # Ray would round up


def _check_address(address: str | None) -> None:
    """Check that HOST:PORT accepts connections; Ray itself would retry for minutes. Raises OSError or ValueError."""
    host, _, port = (address or "").rpartition(":")
    if port.isdecimal():
        if int(port) not in _PORTS:
            raise ValueError(f"a port must be at most {_PORTS[-1]}, got {port}")
        socket.create_connection((host, int(port)), timeout=10).close()


@contextmanager
def _mute_stderr() -> Iterator[None]:
    """Discard what Ray's C++ code writes to stderr; errors are raised."""
    stderr_copy = os.dup(2)
    try:
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(stderr_copy, 2)
        os.close(stderr_copy)


@dataclass(frozen=True)
class Stage:
    """One stage, and the resource it needs: waiting for files, a core, the network, or the driver.

    Driver stages come last and run in the driver, batch after batch, in order.
    """

    name: str
    function: Callable[[list[Any]], Sequence[Any]]
    resource: Literal["io", "cpu", "network", "driver"]


@dataclass(frozen=True)
class Throughput:
    """Photos that a stage has processed, and seconds summed over all its workers."""

    stage: str
    photos: int = 0
    seconds: float = 0.0

    @property
    def photos_per_second(self) -> float:
        """Photos per second of one worker."""
        return self.photos / self.seconds if self.seconds else 0.0

    def __add__(self, other: Throughput) -> Throughput:
        return Throughput(self.stage, self.photos + other.photos, self.seconds + other.seconds)


@dataclass(frozen=True)
class _Batch:
    """Items that are processed together, the outcomes of finished ones, and the throughput of each stage."""

    items: list[Any]
    outcomes: list[Outcome] = field(default_factory=list)
    took: list[Throughput] = field(default_factory=list)

    def after(self, stage: Stage) -> _Batch:
        """The batch after a stage; outcomes are set aside."""
        started = time.perf_counter()
        results = stage.function(self.items) if self.items else []
        took = Throughput(stage.name, len(self.items), time.perf_counter() - started)
        finished = [outcome for each in results if (outcome := _outcome_of(each)) is not None]
        remaining = [each for each in results if _outcome_of(each) is None]
        return _Batch(remaining, [*self.outcomes, *finished], [*self.took, took])


def _outcome_of(result: Any) -> Outcome | None:
    """The outcome of a photo that a stage has finished, alone or in a pair; None if the next stage takes it."""
    last = result[-1] if isinstance(result, tuple) else result
    return last if isinstance(last, Outcome) else None


def run(
    items: Sequence[Any], stages: Sequence[Stage], workers: Workers, on_outcome: OutcomeCallback
) -> list[Throughput]:
    """Run items through all stages in order, and report each outcome as it arrives."""
    totals = [Throughput(stage.name) for stage in stages]
    for batch in _flow(items, stages, workers):
        totals = [total + took for total, took in zip(totals, batch.took, strict=True)]
        assert not batch.items
        for outcome in batch.outcomes:
            on_outcome(outcome)
    return totals


def _flow(items: Sequence[Any], stages: Sequence[Stage], workers: Workers) -> Iterator[_Batch]:
    ray = load_extra("ray", "ray")
    data = load_extra("ray.data", "ray")
    # Errors are raised as one line; Ray's own log messages are for developers.
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module="ray")
    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True  # so that ids are the same as on one machine
    try:
        for chunk in _chunks(items, _CHUNK_SIZE):
            batches = [_pack(_Batch(list(photos))) for photos in _chunks(chunk, _BATCH_SIZE)]
            dataset = data.from_arrow(batches)
            mapped = [stage for stage in stages if stage.resource != "driver"]
            # Without GPUs one worker runs all stages: separate tasks would wait for cores that workers hold, and
            # batches would be copied between processes.
            for group in [[stage] for stage in mapped] if workers.gpus else [mapped]:
                dataset = _map_stages(dataset, group, workers, len(batches), data)
            for packed in dataset.iter_batches(batch_size=1, batch_format="pyarrow"):
                batch = _unpack(packed)
                for stage in stages:
                    batch = batch.after(stage) if stage.resource == "driver" else batch
                yield batch
    except ray.exceptions.RayError as error:
        user_error = _user_error(error, ray)
        if user_error is None:
            raise
        raise user_error from error


def _map_stages(dataset: Any, stages: list[Stage], workers: Workers, batches: int, data: Any) -> Any:
    """Add stages to a dataset; one batch per call, so that little is repeated after a kill."""
    called = partial(dataset.map_batches, batch_size=1, batch_format="pyarrow")
    if all(stage.resource != "network" for stage in stages):
        return called(partial(_step, stages=stages), num_cpus=sum(_CORES_PER_TASK[stage.resource] for stage in stages))
    return called(
        _Worker,
        fn_constructor_args=(stages,),
        compute=data.ActorPoolStrategy(
            size=min(workers.count, batches),
            max_concurrent_calls_per_actor=_BATCHES_PER_WORKER,
            enable_true_multi_threading=True,
        ),
        num_cpus=workers.cpus,
        num_gpus=workers.gpus or None,
    )


def _step(packed: Any, stages: list[Stage], core: AbstractContextManager[object] = _NO_WAIT) -> Any:
    """Run one batch through stages; all except file access holds the core lock."""
    batch = _unpack(packed)
    for stage in stages:
        with _NO_WAIT if stage.resource == "io" else core:
            batch = batch.after(stage)
    return _pack(batch)


class _Worker:
    """A long-lived process that holds the network and computes one batch at a time."""

    def __init__(self, stages: list[Stage]) -> None:
        self._stages, self._core = stages, threading.Lock()

    def __call__(self, packed: Any) -> Any:
        return _step(packed, self._stages, self._core)


def _pack(batch: _Batch) -> Any:
    """Pickle a batch into an Arrow table of one cell."""
    arrow = load_extra("pyarrow", "ray")
    return arrow.table({"batch": arrow.array([pickle.dumps(batch, protocol=5)], arrow.large_binary())})


def _unpack(table: Any) -> _Batch:
    (cell,) = table["batch"]
    batch: _Batch = pickle.loads(cell.as_buffer())
    return batch


def _user_error(error: Exception, ray: Any) -> HomingError | None:
    """The error to show to the user; None if it is a bug, whose traceback is needed."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, HomingError) and not isinstance(cause, ray.exceptions.RayError):
            return cause
        cause = getattr(cause, "cause", None) or cause.__cause__
    if isinstance(error, ray.exceptions.RayTaskError):
        return None
    return HomingError(
        f"Ray failed: {str(error).splitlines()[0]}; finished photos are saved, run the same command again to resume"
    )


def _chunks(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))
