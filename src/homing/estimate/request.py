"""What is to be estimated: how many photos, of what size, on which machines, searched how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from homing.activation import recipe_named
from homing.errors import HomingError, UnknownNameError
from homing.estimate.rates import load_rates, rates_under

PASSIVE = "passive"  # in place of a recipe: photos are only added
DIM, CELLS = 512, 4096  # of homing-1: what was measured
_BYTES_A_PIXEL = 0.5
_LIMIT = 1e18  # of anything, and the least is one by that: what is made of such numbers can be told as numbers


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What is paid, in whatever currency; what is not known is left out."""

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
    """What is to be estimated."""

    photos: int
    gpu: str = "none"
    """Of each machine; none: it has cores alone."""
    cores: int | None = None
    """Of each machine; by default as many as the one that was measured. One with a GPU is known with no others."""
    recipe: str = "homing"
    """Or passive: photos are only added."""
    megapixels: float = 1.0
    photo_bytes: int | None = None
    """Of a file; by default half a byte for each pixel."""
    days: float | None = None
    """In which all of it is to be done; by default one machine does it, however long it takes."""
    cells: int = CELLS
    code_bytes: int = 8
    probes: int | None = None
    """By default as many as stay fast."""
    engine: str = "faiss"
    queries_per_second: float = 0.0
    rates: Mapping[str, float] = field(default_factory=dict)
    """Photos a second that you have measured yourself, on one of your machines, by stage."""
    prices: Prices = Prices()

    def __post_init__(self) -> None:
        if self.gpu not in (machines := rates_under("machines")):
            raise UnknownNameError("GPU", self.gpu, machines)
        if self.engine not in (engines := {name.partition(".")[0] for name in rates_under("search")}):
            raise UnknownNameError("measured engine", self.engine, engines)
        if self.recipe != PASSIVE:
            recipe_named(self.recipe)
        if self.cores is not None and self.gpu != "none" and self.cores != self.measured_cores:
            raise HomingError(
                f"a machine with an {self.gpu} was measured with {self.measured_cores} cores, got {self.cores};"
                " leave out the cores, and say how fast yours is: rates such as activate=PHOTOS_A_SECOND"
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
                f"queries a second are a number, 0 or more and at most {_LIMIT:g}, got {_format_number(self.queries_per_second)}"
            )
        if self.probes is not None and self.probes > self.cells:
            raise HomingError(f"there are {self.cells:,} cells to look into, got {self.probes:,} probes")
        for name in self.rates:
            if name not in self.stages:
                raise UnknownNameError("stage", name, self.stages)

    @property
    def activates(self) -> bool:
        """Whether photos are activated, or only added."""
        return self.recipe != PASSIVE

    @property
    def stages(self) -> tuple[str, ...]:
        """What is done with every photo, in order."""
        return (*(("activate",) if self.activates else ("decode", "describe")), "record", "index")

    @property
    def measured_cores(self) -> int:
        """Cores of the machine that was measured."""
        return int(load_rates()[f"machines.{self.gpu}"].number)

    @property
    def machine_cores(self) -> int:
        """Cores of a machine."""
        return self.cores or self.measured_cores

    @property
    def file_bytes(self) -> float:
        """Bytes of a photo's file."""
        return self.photo_bytes or self.megapixels * 1e6 * _BYTES_A_PIXEL

    @property
    def extra_megapixels(self) -> float:
        """Megapixels by which photos are larger than those that were measured."""
        return max(0.0, self.megapixels - load_rates()["size.measured"].number)


def _format_number(number: float) -> str:
    """A number as errors have it; Python's own may be longer than any that can be written with a point."""
    return f"{number:g}" if isinstance(number, float) or abs(number) < 10**300 else "one of more than 300 digits"
