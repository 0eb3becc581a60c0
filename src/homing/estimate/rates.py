"""Measured rates, each with the command that measured it and the page that reports it: rates.toml."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DIM, CELLS, CODE_BYTES = 512, 4096, 8  # of the codebook homing-1, with which rates were measured


@dataclass(frozen=True, kw_only=True)
class Rate:
    """One measured figure, or several of one kind, as printed on a page of the docs."""

    name: str
    figures: tuple[str, ...]
    unit: str
    page: str
    command: str
    hardware: str
    note: str = ""
    """A caveat, listed among the assumptions of estimates that use this rate."""

    @property
    def numbers(self) -> tuple[float, ...]:
        """All figures, as numbers."""
        return tuple(float(figure.replace(",", "")) for figure in self.figures)

    @property
    def number(self) -> float:
        """The only figure, as a number."""
        (number,) = self.numbers
        return number

    @property
    def seconds(self) -> float:
        """Seconds per item."""
        if self.unit == "a second":
            return 1 / self.number
        return self.number * {"ms": 1e-3, "s": 1, "s a million": 1e-6}[self.unit]


@cache
def load_rates() -> Mapping[str, Rate]:
    """All rates by name, such as activate.h200.homing."""
    document = tomllib.loads(files("homing.estimate").joinpath("rates.toml").read_text(encoding="utf-8"))
    sources = document.pop("sources")

    def nested(prefix: str, table: Mapping[str, Any]) -> Iterator[Rate]:
        for key, value in table.items():
            if "source" not in value:
                yield from nested(f"{prefix}{key}.", value)
                continue
            figures = value["figures"]
            figures = (figures,) if isinstance(figures, str) else tuple(figures)
            yield Rate(name=prefix + key, figures=figures, unit=value["unit"], **sources[value["source"]])

    return {rate.name: rate for rate in nested("", document)}


def rates_under(name: str) -> dict[str, Rate]:
    """Rates whose names start with this prefix, by the rest of the name."""
    return {each.removeprefix(f"{name}."): rate for each, rate in load_rates().items() if each.startswith(f"{name}.")}
