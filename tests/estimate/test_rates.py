"""Every rate is in the docs, next to the command that measured it."""

import re
import runpy
from pathlib import Path

import pytest

from homing.activation import RECIPES
from homing.estimate import Rate, load_rates, rates_under

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("rate", load_rates().values(), ids=lambda rate: rate.name)
def test_a_rate_is_on_its_page(rate: Rate) -> None:
    page = (DOCS / rate.page).read_text()
    assert rate.command in page
    for figure in rate.figures:
        assert re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d]|[.,]\d)", page), figure
    assert rate.hardware
    assert all(number > 0 for number in rate.numbers)


def test_every_machine_has_the_rates_of_an_estimate() -> None:
    for machine in rates_under("machines"):
        assert set(rates_under(f"activate.{machine}")) <= set(RECIPES)
        assert len(rates_under(f"activate.{machine}")) >= 2  # interpolation needs two points
        assert f"add.{machine}" in load_rates()


@pytest.mark.parametrize(
    ("unit", "figure", "seconds"), [("a second", "11,200", 1 / 11200), ("ms", "97.6", 0.0976), ("s", "0.1", 0.1)]
)
def test_units(unit: str, figure: str, seconds: float) -> None:
    rate = Rate(name="", figures=(figure,), unit=unit, page="", command="", hardware="")
    assert rate.seconds == pytest.approx(seconds)


def test_scale_md_lists_the_source_of_every_rate() -> None:
    page = (DOCS / "reference" / "scale.md").read_text()
    assert all(command in page for command in {rate.command for rate in load_rates().values()})


def test_scale_md_has_the_current_estimates() -> None:
    """To update it: python benchmarks/scale_results.py."""
    results = runpy.run_path(str(DOCS.parent / "benchmarks" / "scale_results.py"))
    assert results["extrapolated_table"]() in (DOCS / "reference" / "scale.md").read_text()
