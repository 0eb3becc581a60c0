"""What an estimate is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from typing import Any, Literal

from homing._options import Option, check_limits, setting
from homing.errors import HomingError, UnknownNameError
from homing.estimate.rates import CELLS, CODE_BYTES, load_rates, rates_under

PASSIVE = "passive"  # instead of a recipe: photos are only added
_BYTES_A_PIXEL = 0.5
_LIMIT = 1e18  # of a number; the smallest is 1 / _LIMIT

Basis = Literal["measured", "extrapolated", "computed", "given"]
"""Measured; extrapolated from measurements; computed from sizes; given by the user."""


def _number(help: str, default: Any = MISSING, *, minimum: float = 1 / _LIMIT, **option: Any) -> Any:
    """A number that commands have as an option, of a size at which results stay finite."""
    return setting(Option(help, minimum=minimum, maximum=_LIMIT, **option), default)


def _whole_number(text: str) -> int:
    """Parse a number of photos, such as 1e9."""
    try:
        if (number := float(text)).is_integer():
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise HomingError(f"--photos takes a whole number, such as 1e9, got {text}")


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Prices in any one currency; None if unknown."""

    gpu_hour: float | None = _number("Price of a GPU hour.", None, minimum=0)
    core_hour: float | None = _number("Price of a core hour.", None, minimum=0)
    terabyte_month: float | None = _number("Price of a terabyte month.", None, minimum=0)

    def __post_init__(self) -> None:
        check_limits(self)


@dataclass(frozen=True, kw_only=True)
class EstimateRequest:
    """Input of `estimate`: photos, machines, index, searches and prices."""

    photos: int = _number("How many photos, such as 1e9.", minimum=1, parser=_whole_number, metavar="NUMBER")
    gpu: str = setting(Option("The GPU of each machine: h200, or none."), "none")
    cores: int | None = _number("Cores of each machine without a GPU.", None, minimum=1, default_text="2, as measured")
    recipe: str = setting(Option("The recipe for activation; passive: photos are only added."), "homing")
    megapixels: float = _number("Megapixels of a photo.", 1.0)
    photo_bytes: int | None = _number("Bytes of a photo's file.", None, minimum=1, default_text="half a byte per pixel")
    days: float | None = _number("The deadline, in days.", None, default_text="the time one machine takes")
    cells: int = _number("Cells of the codebook.", CELLS, minimum=1)
    code_bytes: int = _number("Bytes of a code, without its cell.", CODE_BYTES, minimum=1)
    probes: int | None = _number(
        "Cells that a search scans.", None, minimum=1, default_text="as many as hold 20,000 codes"
    )
    engine: str = setting(Option("The search engine: faiss or lance."), "faiss")
    queries_per_second: float = _number("Searches per second.", 0.0, minimum=0)
    rates: Mapping[str, float] = field(default_factory=dict)
    """Your own rates in photos per second of one machine, by stage."""
    prices: Prices = Prices()

    def __post_init__(self) -> None:
        # Not imported above: commands have the fields as options, and must not wait for PyTorch.
        from homing.activation import resolve_recipe

        if self.gpu not in (machines := rates_under("machines")):
            raise UnknownNameError("GPU", self.gpu, machines)
        if self.engine not in (engines := {name.partition(".")[0] for name in rates_under("search")}):
            raise UnknownNameError("measured engine", self.engine, engines)
        if self.activates:
            resolve_recipe(self.recipe)
        if self.cores is not None and self.gpu != "none" and self.cores != self.measured_cores:
            raise HomingError(
                f"the rates of an {self.gpu} were measured with {self.measured_cores} cores, got {self.cores};"
                " omit the cores and give your own rates instead, such as activate=PHOTOS_A_SECOND"
            )
        check_limits(self)
        if self.probes is not None and self.probes > self.cells:
            raise HomingError(f"probes must be at most the number of cells, {self.cells:,}; got {self.probes:,}")
        for name, rate in self.rates.items():
            if name not in self.stages:
                raise UnknownNameError("stage", name, self.stages)
            if not 1 / _LIMIT <= rate <= _LIMIT:
                raise HomingError(f"the rate {name} takes a value from {1 / _LIMIT:g} to {_LIMIT:g}, got {rate:g}")

    @property
    def activates(self) -> bool:
        """Whether photos are activated, not only added."""
        return self.recipe != PASSIVE

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages of each photo, in order."""
        return (*(("activate",) if self.activates else ("decode", "describe")), "record", "index")

    @property
    def measured_cores(self) -> int:
        """Cores of the measured machine."""
        return int(load_rates()[f"machines.{self.gpu}"].number)

    @property
    def machine_cores(self) -> int:
        """Cores of each machine."""
        return self.cores or self.measured_cores

    @property
    def core_ratio(self) -> float:
        """Time relative to the measured machine, by the number of cores."""
        return self.measured_cores / self.machine_cores

    @property
    def file_bytes(self) -> float:
        """Bytes per file."""
        return self.photo_bytes or self.megapixels * 1e6 * _BYTES_A_PIXEL

    @property
    def extra_megapixels(self) -> float:
        """Megapixels above the size of the measured photos."""
        return max(0.0, self.megapixels - load_rates()["size.measured"].number)


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
    unit: Literal["GPU-hours", "core-hours", "terabyte-months"]
    period: Literal["once", "month"]
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
