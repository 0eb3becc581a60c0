"""An estimate: stages, storage, search, cost items and assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from homing.estimate.request import EstimateRequest

Basis = Literal["measured", "extrapolated", "computed", "given"]
"""Measured; extrapolated from measurements; computed from sizes; given by the user."""
Unit = Literal["GPU-hours", "core-hours", "terabyte-months"]
Period = Literal["once", "month"]


@dataclass(frozen=True, kw_only=True)
class StageEstimate:
    """One processing stage: its time per photo, and for all photos on one machine."""

    name: str
    seconds: float
    """Per photo."""
    hours: float
    """For all photos, on one machine."""
    parallel: bool
    """Whether the stage runs on all machines; otherwise one machine runs it."""
    basis: Basis
    sources: Sequence[str]
    notes: Sequence[str]
    """Caveats of the rates used."""


@dataclass(frozen=True, kw_only=True)
class StorageItem:
    """One kind of stored data."""

    name: str
    where: Literal["bucket", "disk", "memory"]
    bytes: float
    basis: Basis


@dataclass(frozen=True, kw_only=True)
class Latency:
    """Latency of one search, from a descriptor to the nearest references."""

    references: int
    cells: int
    probes: int
    codes_scanned: float
    p50_ms: float
    p99_ms: float
    basis: Basis


@dataclass(frozen=True, kw_only=True)
class CostItem:
    """One item of the bill."""

    name: str
    amount: float
    unit: Unit
    period: Period
    cost: float | None
    """None if no price was given."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The whole estimate."""

    request: EstimateRequest
    stages: Sequence[StageEstimate]
    machines: int
    hours: float
    """From start to end, on `machines` machines."""
    bottleneck: str
    """The stage that takes longest on `machines` machines."""
    max_machines: int
    """More machines would wait for the stages that run on one machine."""
    meets_deadline: bool | None
    """Whether the requested number of days is met; None if none was requested."""
    megabytes_per_second: float
    """Read and written by each machine, in total."""
    storage: Sequence[StorageItem]
    search: Sequence[Latency]
    search_cores: float
    """Cores kept busy by queries."""
    cost_items: Sequence[CostItem]
    assumptions: Sequence[str]
