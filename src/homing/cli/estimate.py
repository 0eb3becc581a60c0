"""homing estimate: machines, time, storage and cost for a large number of photos."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from homing._io.files import format_size
from homing.cli._console import JsonFlag, console, one_line, print_json, print_key_values, table

if TYPE_CHECKING:
    from rich.table import Table

    from homing.estimate import Estimate

_DAY, _YEAR = 24, 24 * 365


def estimate(
    photos: Annotated[float, typer.Option(help="How many photos, such as 1e9.")],
    gpu: Annotated[str, typer.Option(help="The GPU of each machine: h200, or none.")] = "none",
    cores: Annotated[
        int | None, typer.Option(help="Cores of each machine without a GPU.", show_default="2, as measured")
    ] = None,
    recipe: Annotated[str, typer.Option(help="The recipe for activation; passive: photos are only added.")] = "homing",
    megapixels: Annotated[float, typer.Option(help="Megapixels of a photo.")] = 1.0,
    photo_bytes: Annotated[
        int | None, typer.Option(help="Bytes of a photo's file.", show_default="half a byte per pixel")
    ] = None,
    days: Annotated[
        float | None, typer.Option(help="The deadline, in days.", show_default="the time one machine takes")
    ] = None,
    cells: Annotated[int, typer.Option(help="Cells of the codebook.")] = 4096,
    code_bytes: Annotated[int, typer.Option(help="Bytes of a code, without its cell.")] = 8,
    probes: Annotated[
        int | None, typer.Option(help="Cells that a search scans.", show_default="as many as hold 20,000 codes")
    ] = None,
    engine: Annotated[str, typer.Option(help="The search engine: faiss or lance.")] = "faiss",
    queries_per_second: Annotated[float, typer.Option(help="Searches per second.")] = 0.0,
    rate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STAGE=NUMBER",
            help="Photos per second of one of your machines, by stage (activate, or decode and describe; record; "
            "index), such as activate=250. Repeatable.",
        ),
    ] = None,
    gpu_hour: Annotated[float | None, typer.Option(help="Price of a GPU hour.")] = None,
    core_hour: Annotated[float | None, typer.Option(help="Price of a core hour.")] = None,
    terabyte_month: Annotated[float | None, typer.Option(help="Price of a terabyte month.")] = None,
    json: JsonFlag = False,
) -> None:
    """Estimate what a large number of photos needs: machines, hours, storage, search time, cost.

    The estimate uses measured rates. The last column of each table is the basis of a figure: measured, extrapolated,
    computed or given. No photo is read.

    Examples:

        homing estimate --photos 1e9 --gpu h200 --days 30

        homing estimate --photos 5e6 --cores 64 --recipe passive --queries-per-second 50 --core-hour 0.04
    """
    from homing.estimate import EstimateRequest, Prices, estimate as compute_estimate

    result = compute_estimate(
        EstimateRequest(
            photos=_whole(photos),
            gpu=gpu,
            cores=cores,
            recipe=recipe,
            megapixels=megapixels,
            photo_bytes=photo_bytes,
            days=days,
            cells=cells,
            code_bytes=code_bytes,
            probes=probes,
            engine=engine,
            queries_per_second=queries_per_second,
            rates=dict(map(_rate, rate or [])),
            prices=Prices(gpu_hour=gpu_hour, core_hour=core_hour, terabyte_month=terabyte_month),
        )
    )
    if json:
        print_json(asdict(result))
    else:
        _show(result)


def _whole(photos: float) -> int:
    from homing.errors import HomingError

    if not (photos >= 1 and photos.is_integer()):
        raise HomingError(f"--photos must be a whole number of at least 1, got {photos:g}")
    return int(photos)


def _rate(text: str) -> tuple[str, float]:
    from homing.errors import HomingError

    name, _, number = text.partition("=")
    try:
        return name, float(number)
    except ValueError:
        raise HomingError(f"a rate is given as STAGE=PHOTOS_A_SECOND, got {text!a}") from None


def _show(estimate: Estimate) -> None:
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
        console.print(rows, highlight=False)
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
