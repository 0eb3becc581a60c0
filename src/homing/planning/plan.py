"""From a question to a plan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from homing.planning.answer import Driver, Every, Latency, Part, Plan, Stage, Unit
from homing.planning.question import CELLS, Question
from homing.planning.searching import latencies, line, searching_cores
from homing.planning.storage import storage
from homing.planning.work import stages

_HOURS_A_MONTH = 730


def plan(question: Question) -> Plan:
    """Machines, hours, storage, search and cost drivers, with what was assumed."""
    done = stages(question)
    shared = sum(stage.hours for stage in done if stage.spreads)
    record, index = (stage.hours for stage in done if not stage.spreads)
    wanted = None if question.days is None else 24 * question.days
    # Photos are recorded while others are worked on; the index is built when all are there.
    left = math.inf if wanted is None else wanted - index
    # More machines than the one writer keeps up with would only wait.
    most = max(1, math.ceil(shared / record))
    machines = min(most, max(1, math.ceil(shared / left))) if left > 0 else most
    hours = max(shared / machines, record) + index
    parts, searches, cores = storage(question), latencies(question), searching_cores(question)
    return Plan(
        question=question,
        stages=done,
        machines=machines,
        hours=hours,
        limits=max(done, key=lambda stage: stage.hours / (machines if stage.spreads else 1)).name,
        most_machines=most,
        in_time=None if wanted is None else hours <= wanted * (1 + 1e-9),
        megabytes_per_second=_moved(question) / (hours * 3600 * machines) / 1e6,
        storage=parts,
        search=searches,
        searching_cores=cores,
        drivers=_drivers(question, shared, parts, cores),
        assumptions=list(_assumptions(question, done, searches)),
    )


def _moved(question: Question) -> float:
    """Bytes that all machines read and write."""
    return question.photos * question.file_bytes * (2 if question.activates else 1)


def _drivers(question: Question, shared: float, parts: Sequence[Part], cores: float) -> list[Driver]:
    """What is paid for, the dearest first; then what has no price: the hours of the work, then storage by its size."""
    prices, found = question.prices, []
    work = " and ".join(name for name in question.stages if name not in ("record", "index"))
    if question.gpu != "none":
        found.append(_driver(work, shared, "GPU-hours", "once", prices.gpu_hour))
    found.append(_driver(work, shared * question.machine_cores, "core-hours", "once", prices.core_hour))
    if cores:
        found.append(_driver("search", cores * _HOURS_A_MONTH, "core-hours", "month", prices.core_hour))
    stored: dict[str, float] = {}
    for part in parts:
        if part.where != "memory":
            name = part.name.partition(":")[0]
            stored[name] = stored.get(name, 0.0) + part.bytes / 1e12
    kept = [_driver(name, amount, "terabyte-months", "month", prices.terabyte_month) for name, amount in stored.items()]
    found += sorted(kept, key=lambda driver: -driver.amount)
    return sorted(found, key=lambda driver: 1.0 if driver.cost is None else -driver.cost)


def _driver(name: str, amount: float, unit: Unit, every: Every, price: float | None) -> Driver:
    cost = None if price is None else amount * price
    return Driver(name=name, amount=amount, unit=unit, every=every, cost=cost)


def _assumptions(question: Question, done: Sequence[Stage], searches: Sequence[Latency]) -> Iterator[str]:
    """What must hold for the plan to come true."""
    yield "Twice the photos, or half the machines, take twice as long; machines do not wait for each other."
    yield "Photos come, and released files go, as fast as the machines work: buckets and network were not measured."
    yield from dict.fromkeys(note for stage in done for note in stage.notes)
    cores, known = question.machine_cores, question.measured_cores
    if question.gpu == "none" and cores != known:
        yield f"{cores} cores do {cores / known:g} times what {known} cores do."
    if question.larger and not question.activates:
        yield "Larger photos are decoded in proportion to their pixels."
    if question.photo_bytes is None:
        yield f"Files of {question.file_bytes / 1e6:.3g} MB, half a byte for each pixel; released ones are as large."
    else:
        yield "Released files are as large as those that came."
    yield "One collection has one writer, which records photos in parcels of 16; the originals lie elsewhere already."
    found = line(question.engine)
    if question.photos > found.largest:
        yield (
            f"Above {found.largest:,.0f} references a search goes on along the line of those measured, in memory;"
            " re-ranking, which reads descriptors from the catalogue, is not in it."
        )
    if any(latency.cells != CELLS for latency in searches):
        yield (
            "Other numbers of cells: choosing one was measured among synthetic centres; such a codebook has to be"
            " trained, and its recall measured."
        )
    if any(stage.basis == "yours" for stage in done):
        yield "Rates marked as yours are those of one of your machines."
