"""Rates that were measured, each with the command that measured it and the page that tells it: rates.toml."""

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


@dataclass(frozen=True, kw_only=True)
class Rate:
    """One figure that was measured, or several of one kind, as they stand on a page of the docs."""

    name: str
    figures: tuple[str, ...]
    unit: str
    page: str
    command: str
    hardware: str
    note: str = ""
    """What must be known of it, in an estimate that is made of it."""

    @property
    def numbers(self) -> tuple[float, ...]:
        """The figures as numbers."""
        return tuple(float(figure.replace(",", "")) for figure in self.figures)

    @property
    def number(self) -> float:
        """The one figure as a number."""
        (number,) = self.numbers
        return number

    @property
    def seconds(self) -> float:
        """What one of what was counted takes."""
        ways = {
            "a second": 1 / self.number,
            "ms": self.number / 1e3,
            "s": self.number,
            "s a million": self.number / 1e6,
        }
        return ways[self.unit]


@cache
def load_rates() -> Mapping[str, Rate]:
    """All rates by their names, such as activate.h200.homing."""
    document = tomllib.loads(files("homing.estimate").joinpath("rates.toml").read_text(encoding="utf-8"))
    sources = document.pop("sources")
    return {rate.name: rate for rate in _walk("", document, sources)}


def rates_under(name: str) -> dict[str, Rate]:
    """The rates whose names begin with this one, by what follows."""
    return {each.removeprefix(f"{name}."): rate for each, rate in load_rates().items() if each.startswith(f"{name}.")}


def _walk(name: str, document: Any, sources: Mapping[str, Mapping[str, str]]) -> Iterator[Rate]:
    for key, value in document.items():
        inner = f"{name}.{key}" if name else key
        if "source" in value:
            figures = value["figures"]
            yield Rate(
                name=inner,
                figures=(figures,) if isinstance(figures, str) else tuple(figures),
                unit=value["unit"],
                **sources[value["source"]],
            )
        else:
            yield from _walk(inner, value, sources)
