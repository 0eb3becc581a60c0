"""A plan: stages, storage, search, cost drivers, and what was assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from homing.planning.question import Question

Basis = Literal["measured", "extrapolated", "arithmetic", "yours"]
"""As it was measured; measured and carried further; counted out; told by you."""
Unit = Literal["GPU-hours", "core-hours", "terabyte-months"]
Every = Literal["once", "month"]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What is done with every photo, and how long one machine takes for all of them."""

    name: str
    seconds: float
    """For one photo."""
    hours: float
    """For all photos, on one machine."""
    spreads: bool
    """Over machines; or is done by one, whatever their number."""
    basis: Basis
    sources: Sequence[str]
    notes: Sequence[str]
    """What must be known of these."""


@dataclass(frozen=True, kw_only=True)
class Part:
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
    codes: float
    """That are looked at."""
    p50_ms: float
    p99_ms: float
    basis: Basis


@dataclass(frozen=True, kw_only=True)
class Driver:
    """Something that is paid for."""

    name: str
    amount: float
    unit: Unit
    every: Every
    cost: float | None
    """Where its price was told."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All of it."""

    question: Question
    stages: Sequence[Stage]
    machines: int
    hours: float
    """From start to end, on so many machines."""
    limits: str
    """The stage that takes longest, on so many machines."""
    most_machines: int
    """More than these would wait for what is done by one."""
    in_time: bool | None
    """Whether it is done in the days wanted; None where none were said."""
    megabytes_per_second: float
    """Read and written by each machine together."""
    storage: Sequence[Part]
    search: Sequence[Latency]
    searching_cores: float
    """Kept busy by the queries."""
    drivers: Sequence[Driver]
    assumptions: Sequence[str]
