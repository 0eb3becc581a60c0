"""From a request to an estimate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from homing.estimate.latency import latencies, latency_model, search_cores
from homing.estimate.request import CELLS, EstimateRequest
from homing.estimate.result import CostItem, Estimate, Latency, Period, StageEstimate, StorageItem, Unit
from homing.estimate.stages import stages
from homing.estimate.storage import storage

_HOURS_A_MONTH = 730


def estimate(request: EstimateRequest) -> Estimate:
    """Machines, hours, storage, search and cost items, with what was assumed."""
    done = stages(request)
    shared = sum(stage.hours for stage in done if stage.parallel)
    record, index = (stage.hours for stage in done if not stage.parallel)
    wanted = None if request.days is None else 24 * request.days
    # Photos are recorded while others are worked on; the index is built when all are there.
    left = math.inf if wanted is None else wanted - index
    # More machines than the one writer keeps up with would only wait.
    most = max(1, math.ceil(shared / record))
    machines = min(most, max(1, math.ceil(shared / left))) if left > 0 else most
    hours = max(shared / machines, record) + index
    parts, searches, cores = storage(request), latencies(request), search_cores(request)
    return Estimate(
        request=request,
        stages=done,
        machines=machines,
        hours=hours,
        bottleneck=max(done, key=lambda stage: stage.hours / (machines if stage.parallel else 1)).name,
        max_machines=most,
        meets_deadline=None if wanted is None else hours <= wanted * (1 + 1e-9),
        megabytes_per_second=_traffic_bytes(request) / (hours * 3600 * machines) / 1e6,
        storage=parts,
        search=searches,
        search_cores=cores,
        cost_items=_cost_items(request, shared, parts, cores),
        assumptions=list(_assumptions(request, done, searches)),
    )


def _traffic_bytes(request: EstimateRequest) -> float:
    """Bytes that all machines read and write."""
    return request.photos * request.file_bytes * (2 if request.activates else 1)


def _cost_items(request: EstimateRequest, shared: float, parts: Sequence[StorageItem], cores: float) -> list[CostItem]:
    """What is paid for, the dearest first; then what has no price: the hours of the work, then storage by its size."""
    prices, found = request.prices, []
    work = " and ".join(name for name in request.stages if name not in ("record", "index"))
    if request.gpu != "none":
        found.append(_cost_item(work, shared, "GPU-hours", "once", prices.gpu_hour))
    found.append(_cost_item(work, shared * request.machine_cores, "core-hours", "once", prices.core_hour))
    if cores:
        found.append(_cost_item("search", cores * _HOURS_A_MONTH, "core-hours", "month", prices.core_hour))
    stored: dict[str, float] = {}
    for part in parts:
        if part.where != "memory":
            name = part.name.partition(":")[0]
            stored[name] = stored.get(name, 0.0) + part.bytes / 1e12
    kept = [
        _cost_item(name, amount, "terabyte-months", "month", prices.terabyte_month) for name, amount in stored.items()
    ]
    found += sorted(kept, key=lambda item: -item.amount)
    return sorted(found, key=lambda item: 1.0 if item.cost is None else -item.cost)


def _cost_item(name: str, amount: float, unit: Unit, period: Period, price: float | None) -> CostItem:
    cost = None if price is None else amount * price
    return CostItem(name=name, amount=amount, unit=unit, period=period, cost=cost)


def _assumptions(request: EstimateRequest, done: Sequence[StageEstimate], searches: Sequence[Latency]) -> Iterator[str]:
    """What must hold for the estimate to come true."""
    yield "Twice the photos, or half the machines, take twice as long; machines do not wait for each other."
    yield "Photos come, and released files go, as fast as the machines work: buckets and network were not measured."
    yield from dict.fromkeys(note for stage in done for note in stage.notes)
    cores, known = request.machine_cores, request.measured_cores
    if request.gpu == "none" and cores != known:
        yield f"{cores} cores do {cores / known:g} times what {known} cores do."
    if request.extra_megapixels and not request.activates:
        yield "Larger photos are decoded in proportion to their pixels."
    if request.photo_bytes is None:
        yield f"Files of {request.file_bytes / 1e6:.3g} MB, half a byte for each pixel; released ones are as large."
    else:
        yield "Released files are as large as those that came."
    yield "One collection has one writer, which records photos in batches of 16; the originals lie elsewhere already."
    found = latency_model(request.engine)
    if request.photos > found.max_references:
        yield (
            f"Above {found.max_references:,.0f} references a search goes on along the line of those measured, in memory;"
            " re-ranking, which reads descriptors from the catalog, is not in it."
        )
    if any(latency.cells != CELLS for latency in searches):
        yield (
            "Other numbers of cells: choosing one was measured among synthetic centers; such a codebook has to be"
            " trained, and its recall measured."
        )
    if any(stage.basis == "given" for stage in done):
        yield "Rates marked as given are those of one of your machines."
