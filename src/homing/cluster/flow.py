"""Photos on their way through Ray Data: in parcels, stage by stage, with what each stage took."""

from __future__ import annotations

import logging
import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import filterfalse
from typing import Any, TypeVar

from homing._extras import load_extra
from homing.cluster.machines import Workers
from homing.collection import Outcome
from homing.errors import HomingError

Item = TypeVar("Item")

_TOGETHER = 16  # photos in a parcel; a worker that is killed repeats as many
_LEG = 200_000  # photos that Ray plans at once: its memory for that grows with them


@dataclass(frozen=True)
class Stage:
    """What is done with the items of a parcel: by tasks that take a share of a core, or by workers that stay.

    What takes neither is done by the one who runs the job, parcel after parcel in their order, when all else is done.
    """

    name: str
    work: Callable[[list[Any]], Sequence[Any]]
    cpus: float = 0.0
    workers: Workers | None = None

    @property
    def is_elsewhere(self) -> bool:
        """Whether Ray has it done."""
        return self.workers is not None or self.cpus > 0


@dataclass(frozen=True)
class Throughput:
    """How many photos came to a stage, and how many seconds all that worked on them took."""

    stage: str
    photos: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Photos a second, of one that works at a time."""
        return self.photos / self.seconds if self.seconds else 0.0

    def __add__(self, other: Throughput) -> Throughput:
        return Throughput(self.stage, self.photos + other.photos, self.seconds + other.seconds)


@dataclass(frozen=True)
class _Parcel:
    """Items that travel together, the outcomes of those that are done, and what each stage took."""

    items: list[Any]
    outcomes: list[Outcome] = field(default_factory=list)
    took: list[Throughput] = field(default_factory=list)

    def after(self, stage: Stage) -> _Parcel:
        """The parcel when a stage has worked on it; outcomes leave the way."""
        started = time.perf_counter()
        came = stage.work(self.items) if self.items else []
        took = Throughput(stage.name, len(self.items), time.perf_counter() - started)
        return _Parcel(
            [item for item in came if not isinstance(item, Outcome)],
            [*self.outcomes, *(item for item in came if isinstance(item, Outcome))],
            [*self.took, took],
        )


def run(items: Sequence[Any], stages: Sequence[Stage], report: Callable[[Outcome], None]) -> list[Throughput]:
    """Send items through all stages, in their order, and report what comes of each as it comes."""
    totals = [Throughput(stage.name) for stage in stages]
    for parcel in _flow(items, stages):
        totals = [total + took for total, took in zip(totals, parcel.took, strict=True)]
        assert not parcel.items
        for outcome in parcel.outcomes:
            report(outcome)
    return totals


def _flow(items: Sequence[Any], stages: Sequence[Stage]) -> Iterator[_Parcel]:
    ray = load_extra("ray", "ray")
    data = load_extra("ray.data", "ray")
    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True  # so that references have the ids that one machine would give
    # What goes wrong is raised, and told in one line; what Ray advises is for those who write its plans.
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module="ray")
    try:
        for leg in _cut(items, _LEG):
            parcels = [_packed(_Parcel(list(some))) for some in _cut(leg, _TOGETHER)]
            way = data.from_arrow(parcels)
            for stage in filter(lambda each: each.is_elsewhere, stages):
                way = _through(way, stage, len(parcels), data)
            for packed in way.iter_batches(batch_size=1, batch_format="pyarrow"):
                parcel = _unpacked(packed)
                for stage in filterfalse(lambda each: each.is_elsewhere, stages):
                    parcel = parcel.after(stage)
                yield parcel
    except ray.exceptions.RayError as error:
        told = _told(error, ray)
        if told is None:
            raise
        raise told from error


def _through(way: Any, stage: Stage, parcels: int, data: Any) -> Any:
    """The way with one stage more: one parcel a call, so that what is repeated after a kill is one parcel."""
    called = partial(way.map_batches, batch_size=1, batch_format="pyarrow")
    if stage.workers is None:
        return called(partial(_step, stage=stage), num_cpus=stage.cpus)
    workers = stage.workers
    return called(
        _Worker,
        fn_constructor_args=(stage,),
        compute=data.ActorPoolStrategy(size=min(workers.count, parcels)),
        num_cpus=workers.cpus,
        num_gpus=workers.gpus or None,
    )


def _step(packed: Any, stage: Stage) -> Any:
    return _packed(_unpacked(packed).after(stage))


class _Worker:
    """A process that stays, and holds what its stage needs."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def __call__(self, packed: Any) -> Any:
        return _step(packed, self._stage)


def _packed(parcel: _Parcel) -> Any:
    """A parcel as Ray Data sees it: a table of one cell."""
    arrow = load_extra("pyarrow", "ray")
    return arrow.table({"parcel": arrow.array([pickle.dumps(parcel, protocol=5)], arrow.large_binary())})


def _unpacked(table: Any) -> _Parcel:
    (cell,) = table["parcel"]
    parcel: _Parcel = pickle.loads(cell.as_buffer())
    return parcel


def _told(error: Exception, ray: Any) -> HomingError | None:
    """What went wrong in words that a user can act on; None if only a bug explains it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, HomingError) and not isinstance(cause, ray.exceptions.RayError):
            return cause
        cause = getattr(cause, "cause", None) or cause.__cause__
    if isinstance(error, ray.exceptions.RayTaskError):
        return None
    return HomingError(f"Ray gave up: {str(error).splitlines()[0]}; what was done is kept, the same command continues")


def _cut(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))
