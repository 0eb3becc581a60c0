"""An estimate: stages, storage, search, cost items, and what was assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from homing.estimate.request import EstimateRequest

Basis = Literal["measured", "extrapolated", "computed", "given"]
"""Measured; extrapolated from measurements; computed; given by the user."""
Unit = Literal["GPU-hours", "core-hours", "terabyte-months"]
Period = Literal["once", "month"]


@dataclass(frozen=True, kw_only=True)
class StageEstimate:
    """What is done with every photo, and how long one machine takes for all of them."""

    name: str
    seconds: float
    """For one photo."""
    hours: float
    """For all photos, on one machine."""
    parallel: bool
    """Over machines; or is done by one, whatever their number."""
    basis: Basis
    sources: Sequence[str]
    notes: Sequence[str]
    """What must be known of these."""


@dataclass(frozen=True, kw_only=True)
class StorageItem:
    """Something that is kept of the photos."""

    name: str
    where: Literal["bucket", "disk", "memory"]
    bytes: float
    basis: Basis


@dataclass(frozen=True, kw_only=True)
class Latency:
    """One search, from a descriptor to the nearest references."""

    references: int
    cells: int
    probes: int
    codes_scanned: float
    """That are looked at."""
    p50_ms: float
    p99_ms: float
    basis: Basis


@dataclass(frozen=True, kw_only=True)
class CostItem:
    """Something that is paid for."""

    name: str
    amount: float
    unit: Unit
    period: Period
    cost: float | None
    """Where its price was told."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """All of it."""

    request: EstimateRequest
    stages: Sequence[StageEstimate]
    machines: int
    hours: float
    """From start to end, on so many machines."""
    bottleneck: str
    """The stage that takes longest, on so many machines."""
    max_machines: int
    """More than these would wait for what is done by one."""
    meets_deadline: bool | None
    """Whether it is done in the days wanted; None where none were said."""
    megabytes_per_second: float
    """Read and written by each machine together."""
    storage: Sequence[StorageItem]
    search: Sequence[Latency]
    search_cores: float
    """Kept busy by the queries."""
    cost_items: Sequence[CostItem]
    assumptions: Sequence[str]
