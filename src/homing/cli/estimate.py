"""homing estimate: machines, time, storage and cost for a large number of photos."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Annotated

import typer
from rich.table import Table

from homing._io.files import format_size
from homing.cli._console import JsonFlag, console, one_line, print_json, print_key_values, table
from homing.errors import HomingError
from homing.estimate import Estimate, EstimateRequest, Prices, estimate as calculate

_DAY, _YEAR = 24, 24 * 365


def estimate(
    *,
    request: EstimateRequest,
    rate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STAGE=NUMBER",
            help="Photos per second of one of your machines, by stage (activate, or decode and describe; record; "
            "index), such as activate=250. Repeatable.",
        ),
    ] = None,
    prices: Prices,
    json: JsonFlag = False,
) -> None:
    """Estimate what a large number of photos needs: machines, hours, storage, search time, cost.

    The estimate uses measured rates. The last column of each table is the basis of a figure: measured, extrapolated,
    computed or given. No photo is read.

    Examples:

        homing estimate --photos 1e9 --gpu h200 --days 30

        homing estimate --photos 5e6 --cores 64 --recipe passive --queries-per-second 50 --core-hour 0.04
    """
    result = calculate(replace(request, rates=dict(map(_rate, rate or [])), prices=prices))
    if json:
        print_json(asdict(result))
    else:
        _print_estimate(result)


def _rate(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        return name, float(number)
    except ValueError:
        raise HomingError(f"a rate is given as STAGE=PHOTOS_A_SECOND, got {text!a}") from None


def _print_estimate(estimate: Estimate) -> None:
    request = estimate.request
    machine = f"{request.machine_cores} cores" + ("" if request.gpu == "none" else f" and one {request.gpu}")
    many = f"{estimate.machines:,} machine{'s' * (estimate.machines > 1)} of {machine}"
    late = "" if estimate.meets_deadline is not False else f", later than the deadline of {request.days:g} days"
    print_key_values(
        {
            "photos": f"{request.photos:,} of {request.megapixels:g} megapixels, recipe {request.recipe}",
            "machines": f"{many}; more than {estimate.max_machines:,} would wait for the single writer",
            "time": f"{_time(estimate.hours)} elapsed{late}; bottleneck: {estimate.bottleneck}",
            "traffic": f"{estimate.megabytes_per_second:,.3g} MB/s per machine, read and written",
        }
    )
    for rows in _tables(estimate):
        console.print()
        console.print(rows)
    if request.queries_per_second:
        cores = f"{estimate.search_cores:,.1f} busy cores for {request.queries_per_second:g} queries/s"
        console.print()
        console.print(one_line(f"{cores}; each search machine holds the index in memory"))
    console.print()
    for remark in _remarks(estimate):
        console.print(one_line(remark), soft_wrap=True)


def _tables(estimate: Estimate) -> Iterator[Table]:
    """Stages, storage, search, cost items."""
    stages = table("stage", "on one machine", "photos/s", "parallel", "basis")
    for stage in estimate.stages:
        shares = "yes" if stage.parallel else "no"
        stages.add_row(stage.name, _time(stage.hours), _number(1 / stage.seconds), shares, stage.basis)
    yield stages
    storage = table("stored", "where", "size", "basis")
    for part in estimate.storage:
        storage.add_row(part.name, part.where, format_size(part.bytes), part.basis)
    yield storage
    search = table("references", "cells", "probes", "codes scanned", "p50, ms", "p99, ms", "basis")
    for each in estimate.search:
        counts = (each.references, each.cells, each.probes, round(each.codes_scanned))
        search.add_row(*(f"{count:,}" for count in counts), f"{each.p50_ms:.2f}", f"{each.p99_ms:.2f}", each.basis)
    yield search
    priced = any(item.cost is not None for item in estimate.cost_items)
    cost_items = table("cost item" + ", highest first" * priced, "amount", "", "cost" * priced)
    for item in estimate.cost_items:
        cost = "" if item.cost is None else f"{item.cost:,.2f}"
        every = " per month" if item.period == "month" else ""
        cost_items.add_row(item.name, _number(item.amount), item.unit + every, cost)
    yield cost_items


def _remarks(estimate: Estimate) -> Iterator[str]:
    yield "Assumed:"
    yield from (f"- {each}" for each in estimate.assumptions)
    yield "Measured by (see docs/reference/scale.md):"
    yield from (f"- {each}" for each in dict.fromkeys(source for stage in estimate.stages for source in stage.sources))


def _time(hours: float) -> str:
    """A time in its largest suitable unit."""
    units = ((_YEAR, "years"), (_DAY, "days"), (1, "hours"), (1 / 60, "minutes"), (1 / 3600, "seconds"))
    size, name = next((each for each in units if hours >= 2 * each[0]), units[-1])
    return f"{_number(hours / size)} {name}"


def _number(value: float) -> str:
    """A number with three significant digits, and all digits before the decimal point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
