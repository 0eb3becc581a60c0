"""Compute an estimate from a request."""

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
    """Estimate machines, hours, storage, search latency and cost items, and list the assumptions."""
    done = stages(request)
    shared = sum(stage.hours for stage in done if stage.parallel)
    record, index = (stage.hours for stage in done if not stage.parallel)
    wanted = None if request.days is None else 24 * request.days
    # Recording overlaps with the parallel stages; the index is built after all photos are recorded.
    left = math.inf if wanted is None else wanted - index
    # More machines than this would wait for the single writer.
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
    """Bytes read and written by all machines."""
    return request.photos * request.file_bytes * (2 if request.activates else 1)


def _cost_items(request: EstimateRequest, shared: float, parts: Sequence[StorageItem], cores: float) -> list[CostItem]:
    """Cost items: those with a price first, most expensive first; then hours of work, then storage by size."""
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
    storage_items = [
        _cost_item(name, amount, "terabyte-months", "month", prices.terabyte_month) for name, amount in stored.items()
    ]
    found += sorted(storage_items, key=lambda item: -item.amount)
    return sorted(found, key=lambda item: 1.0 if item.cost is None else -item.cost)


def _cost_item(name: str, amount: float, unit: Unit, period: Period, price: float | None) -> CostItem:
    cost = None if price is None else amount * price
    return CostItem(name=name, amount=amount, unit=unit, period=period, cost=cost)


def _assumptions(request: EstimateRequest, done: Sequence[StageEstimate], searches: Sequence[Latency]) -> Iterator[str]:
    """The assumptions of the estimate."""
    yield "Time grows linearly with photos and falls linearly with machines; machines do not wait for each other."
    yield "Storage and network keep up with the machines; their throughput was not measured."
    yield from dict.fromkeys(note for stage in done for note in stage.notes)
    cores, known = request.machine_cores, request.measured_cores
    if request.gpu == "none" and cores != known:
        yield f"{cores} cores process {cores / known:g} times as many photos as {known} cores."
    if request.extra_megapixels and not request.activates:
        yield "Decoding time grows in proportion to pixels."
    if request.photo_bytes is None:
        yield f"Files of {request.file_bytes / 1e6:.3g} MB, half a byte per pixel; released files have the same size."
    else:
        yield "Released files have the size of the originals."
    yield "One collection has one writer, which records photos in batches of 16; originals are not copied."
    found = latency_model(request.engine)
    if request.photos > found.max_references:
        yield (
            f"Above {found.max_references:,.0f} references, search times are extrapolated linearly from measurements in"
            " memory; re-ranking, which reads descriptors from the catalog, is not included."
        )
    if any(latency.cells != CELLS for latency in searches):
        yield (
            "Other numbers of cells: the time to choose a cell was measured with synthetic centers; such a codebook"
            " must be trained and its recall measured."
        )
    if any(stage.basis == "given" for stage in done):
        yield "Rates with the basis given are yours, for one machine."
