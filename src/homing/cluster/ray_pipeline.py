"""Photos on their way through Ray Data: in batches, stage by stage, with what each stage took."""

from __future__ import annotations

import logging
import pickle
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

from homing._extras import load_extra
from homing.cluster.resources import CORES_PER_TASK, Workers
from homing.collection import Outcome
from homing.errors import HomingError

Item = TypeVar("Item")

_NO_WAIT = nullcontext()
_BATCH_SIZE = 16  # photos in a batch
# Parcels that a worker has: one it computes, one whose files it waits for; if it is killed both are repeated.
_BATCHES_PER_WORKER = 2
_CHUNK_SIZE = 200_000  # photos that Ray plans at once: its memory for that grows with them


@dataclass(frozen=True)
class Stage:
    """What is done with the items of a batch, and what it takes: files that are waited for, a core, or the network.

    What is done here is done by the one who runs the job, batch after batch in their order, when all else is done.
    """

    name: str
    function: Callable[[list[Any]], Sequence[Any]]
    resource: Literal["io", "cpu", "network", "driver"]


@dataclass(frozen=True)
class Throughput:
    """How many photos came to a stage, and how many seconds all that worked on them took."""

    stage: str
    photos: int = 0
    seconds: float = 0.0

    @property
    def photos_per_second(self) -> float:
        """Photos a second, of one that works at a time."""
        return self.photos / self.seconds if self.seconds else 0.0

    def __add__(self, other: Throughput) -> Throughput:
        return Throughput(self.stage, self.photos + other.photos, self.seconds + other.seconds)


@dataclass(frozen=True)
class _Batch:
    """Items that travel together, the outcomes of those that are done, and what each stage took."""

    items: list[Any]
    outcomes: list[Outcome] = field(default_factory=list)
    took: list[Throughput] = field(default_factory=list)

    def after(self, stage: Stage) -> _Batch:
        """The batch when a stage has worked on it; outcomes leave the way."""
        started = time.perf_counter()
        came = stage.function(self.items) if self.items else []
        took = Throughput(stage.name, len(self.items), time.perf_counter() - started)
        return _Batch(
            [item for item in came if not isinstance(item, Outcome)],
            [*self.outcomes, *(item for item in came if isinstance(item, Outcome))],
            [*self.took, took],
        )


def run(
    items: Sequence[Any], stages: Sequence[Stage], workers: Workers, report: Callable[[Outcome], None]
) -> list[Throughput]:
    """Send items through all stages, in their order, and report what comes of each as it comes."""
    totals = [Throughput(stage.name) for stage in stages]
    for batch in _flow(items, stages, workers):
        totals = [total + took for total, took in zip(totals, batch.took, strict=True)]
        assert not batch.items
        for outcome in batch.outcomes:
            report(outcome)
    return totals


def _flow(items: Sequence[Any], stages: Sequence[Stage], workers: Workers) -> Iterator[_Batch]:
    ray = load_extra("ray", "ray")
    data = load_extra("ray.data", "ray")
    # What goes wrong is raised, and told in one line; what Ray advises is for those who write its plans.
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module="ray")
    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True  # so that references have the ids that one machine would give
    try:
        for chunk in _chunks(items, _CHUNK_SIZE):
            batches = [_pack(_Batch(list(some))) for some in _chunks(chunk, _BATCH_SIZE)]
            dataset = data.from_arrow(batches)
            for some in _group_stages([stage for stage in stages if stage.resource != "driver"], workers):
                dataset = _map_stages(dataset, some, workers, len(batches), data)
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


def _group_stages(stages: list[Stage], workers: Workers) -> list[list[Stage]]:
    """The stages that are done by one hand.

    Beside GPUs each has its own, as cores are there to keep them busy. Where the network computes on the cores too, the
    worker does all: tasks would wait for cores that workers hold, and batches would be copied between them.
    """
    return [[stage] for stage in stages] if workers.gpus else [stages]


def _map_stages(dataset: Any, stages: list[Stage], workers: Workers, batches: int, data: Any) -> Any:
    """The way with some stages more: one batch a call, so that little is repeated after a kill."""
    called = partial(dataset.map_batches, batch_size=1, batch_format="pyarrow")
    if all(stage.resource != "network" for stage in stages):
        return called(partial(_step, stages=stages), num_cpus=sum(CORES_PER_TASK[stage.resource] for stage in stages))
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
    """One batch through some stages; all but waiting for files is done while one holds the core."""
    batch = _unpack(packed)
    for stage in stages:
        with _NO_WAIT if stage.resource == "io" else core:
            batch = batch.after(stage)
    return _pack(batch)


class _Worker:
    """A process that stays, holds the network, and computes one batch at a time."""

    def __init__(self, stages: list[Stage]) -> None:
        self._stages, self._core = stages, threading.Lock()

    def __call__(self, packed: Any) -> Any:
        return _step(packed, self._stages, self._core)


def _pack(batch: _Batch) -> Any:
    """A batch as Ray Data sees it: a table of one cell."""
    arrow = load_extra("pyarrow", "ray")
    return arrow.table({"batch": arrow.array([pickle.dumps(batch, protocol=5)], arrow.large_binary())})


def _unpack(table: Any) -> _Batch:
    (cell,) = table["batch"]
    batch: _Batch = pickle.loads(cell.as_buffer())
    return batch


def _user_error(error: Exception, ray: Any) -> HomingError | None:
    """What went wrong in words that a user can act on; None if only a bug explains it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, HomingError) and not isinstance(cause, ray.exceptions.RayError):
            return cause
        cause = getattr(cause, "cause", None) or cause.__cause__
    if isinstance(error, ray.exceptions.RayTaskError):
        return None
    return HomingError(f"Ray gave up: {str(error).splitlines()[0]}; what was done is kept, the same command continues")


def _chunks(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))
