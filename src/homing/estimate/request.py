"""Input of an estimate: photos, machines, index, searches and prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from homing.activation import resolve_recipe
from homing.errors import HomingError, UnknownNameError
from homing.estimate.rates import load_rates, rates_under

PASSIVE = "passive"  # instead of a recipe: photos are only added
DIM, CELLS = 512, 4096  # of the codebook homing-1, with which rates were measured
_BYTES_A_PIXEL = 0.5
_LIMIT = 1e18  # largest value; the smallest is 1 / _LIMIT. Results then stay finite


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Prices in any one currency; None if unknown."""

    gpu_hour: float | None = None
    core_hour: float | None = None
    terabyte_month: float | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            if (price := getattr(self, each.name)) is not None and not 0 <= price <= _LIMIT:
                raise HomingError(
                    f"a price is a number, 0 or more and at most {_LIMIT:g}, got {_format_number(price)} as {each.name}"
                )


@dataclass(frozen=True, kw_only=True)
class EstimateRequest:
    """Input of `estimate`."""

    photos: int
    gpu: str = "none"
    """GPU of each machine; "none" for machines without one."""
    cores: int | None = None
    """Cores of each machine; by default those of the measured machine. Cannot be changed with a GPU."""
    recipe: str = "homing"
    """A recipe, or "passive" to only add photos."""
    megapixels: float = 1.0
    photo_bytes: int | None = None
    """Bytes per file; by default half a byte per pixel."""
    days: float | None = None
    """Deadline, which determines the number of machines; by default one machine."""
    cells: int = CELLS
    code_bytes: int = 8
    probes: int | None = None
    """Cells probed per search; by default chosen for speed."""
    engine: str = "faiss"
    queries_per_second: float = 0.0
    rates: Mapping[str, float] = field(default_factory=dict)
    """Your own rates in photos per second of one machine, by stage."""
    prices: Prices = Prices()

    def __post_init__(self) -> None:
        if self.gpu not in (machines := rates_under("machines")):
            raise UnknownNameError("GPU", self.gpu, machines)
        if self.engine not in (engines := {name.partition(".")[0] for name in rates_under("search")}):
            raise UnknownNameError("measured engine", self.engine, engines)
        if self.recipe != PASSIVE:
            resolve_recipe(self.recipe)
        if self.cores is not None and self.gpu != "none" and self.cores != self.measured_cores:
            raise HomingError(
                f"the rates of an {self.gpu} were measured with {self.measured_cores} cores, got {self.cores};"
                " omit the cores and give your own rates instead, such as activate=PHOTOS_A_SECOND"
            )
        for name in ("photos", "cores", "cells", "probes", "code_bytes", "photo_bytes"):
            number = getattr(self, name)
            if number is not None and not (1 <= number <= _LIMIT and number == int(number)):
                raise HomingError(
                    f"{name} must be a whole number, at least 1 and at most {_LIMIT:g}, got {_format_number(number)}"
                )
        above: dict[str, float | None] = {"megapixels": self.megapixels, "days": self.days}
        above |= {f"the rate {name}": number for name, number in self.rates.items()}
        for name, number in above.items():
            if number is not None and not 1 / _LIMIT <= number <= _LIMIT:
                raise HomingError(
                    f"{name} must be a number above 0, from {1 / _LIMIT:g} to {_LIMIT:g}, got {_format_number(number)}"
                )
        if not 0 <= self.queries_per_second <= _LIMIT:
            raise HomingError(
                f"queries per second must be a number from 0 to {_LIMIT:g},"
                f" got {_format_number(self.queries_per_second)}"
            )
        if self.probes is not None and self.probes > self.cells:
            raise HomingError(f"probes must be at most the number of cells, {self.cells:,}; got {self.probes:,}")
        for name in self.rates:
            if name not in self.stages:
                raise UnknownNameError("stage", name, self.stages)

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
    def file_bytes(self) -> float:
        """Bytes per file."""
        return self.photo_bytes or self.megapixels * 1e6 * _BYTES_A_PIXEL

    @property
    def extra_megapixels(self) -> float:
        """Megapixels above the size of the measured photos."""
        return max(0.0, self.megapixels - load_rates()["size.measured"].number)


def _format_number(number: float) -> str:
    """Format a number for an error; very large integers cannot be converted to float."""
    return f"{number:g}" if isinstance(number, float) or abs(number) < 10**300 else "a number of more than 300 digits"
