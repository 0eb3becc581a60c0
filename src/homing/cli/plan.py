"""homing plan: what very many photos take, before they are begun."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli._screen import AsJson, line, print_facts, print_json, screen, table

if TYPE_CHECKING:
    from rich.table import Table

    from homing.planning import Plan

_DAY, _YEAR = 24, 24 * 365


def plan(
    photos: Annotated[float, typer.Option(help="How many, such as 1e9.")],
    gpu: Annotated[str, typer.Option(help="Of each machine: h200, or none.")] = "none",
    cores: Annotated[
        int | None, typer.Option(help="Of each machine without a GPU.", show_default="2, as measured")
    ] = None,
    recipe: Annotated[str, typer.Option(help="To activate with; passive: photos are only added.")] = "homing",
    megapixels: Annotated[float, typer.Option(help="Of a photo.")] = 1.0,
    photo_bytes: Annotated[
        int | None, typer.Option(help="Of a photo's file.", show_default="half a byte for each pixel")
    ] = None,
    days: Annotated[
        float | None, typer.Option(help="In which all is to be done.", show_default="as one machine takes")
    ] = None,
    cells: Annotated[int, typer.Option(help="Of the codebook.")] = 4096,
    code_bytes: Annotated[int, typer.Option(help="Of a code, but for its cell.")] = 8,
    probes: Annotated[
        int | None, typer.Option(help="Cells that a search looks into.", show_default="as many as stay fast")
    ] = None,
    engine: Annotated[str, typer.Option(help="That searches.")] = "faiss",
    queries_per_second: Annotated[float, typer.Option(help="Photos that are searched for.")] = 0.0,
    rate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STAGE=NUMBER", help="Photos a second that one of your machines does, such as activate=250."
        ),
    ] = None,
    gpu_hour: Annotated[float | None, typer.Option(help="Price of a GPU for an hour.")] = None,
    core_hour: Annotated[float | None, typer.Option(help="Price of a core for an hour.")] = None,
    terabyte_month: Annotated[float | None, typer.Option(help="Price of a terabyte for a month.")] = None,
    json: AsJson = False,
) -> None:
    """Say what very many photos take: machines, hours, storage, search, what drives the cost.

    From rates that were measured, and says which of them are carried further. It looks at no photo.

    Examples:

        homing plan --photos 1e9 --gpu h200 --days 30

        homing plan --photos 5e6 --cores 64 --recipe passive --queries-per-second 50 --core-hour 0.04
    """
    from homing.planning import Prices, Question
    from homing.planning import plan as answer

    made = answer(
        Question(
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
        print_json(asdict(made))
    else:
        _show(made)


def _whole(photos: float) -> int:
    from homing.errors import HomingError

    if not (photos >= 1 and photos.is_integer()):
        raise HomingError(f"photos must be a whole number, at least 1, got {photos:g}")
    return int(photos)


def _rate(said: str) -> tuple[str, float]:
    from homing.errors import HomingError

    name, _, number = said.partition("=")
    try:
        return name, float(number)
    except ValueError:
        raise HomingError(f"a rate is said as STAGE=PHOTOS_A_SECOND, got {said!a}") from None


def _show(plan: Plan) -> None:
    question = plan.question
    machine = f"{question.machine_cores} cores" + ("" if question.gpu == "none" else f" and one {question.gpu}")
    many = f"{plan.machines:,} machine{'s' * (plan.machines > 1)} of {machine}"
    late = "" if plan.in_time is not False else f", later than the {question.days:g} days wanted"
    print_facts(
        {
            "photos": f"{question.photos:,} of {question.megapixels:g} megapixels, recipe {question.recipe}",
            "machines": f"{many}; more than {plan.most_machines:,} would wait for the one writer",
            "time": f"{_time(plan.hours)} from start to end{late}; what limits is: {plan.limits}",
            "traffic": f"{plan.megabytes_per_second:,.3g} MB a second of each machine, read and written",
        }
    )
    for shown in _tables(plan):
        screen.print()
        screen.print(shown, highlight=False)
    if question.queries_per_second:
        cores = f"{plan.searching_cores:,.1f} cores busy with {question.queries_per_second:g} queries a second"
        screen.print()
        screen.print(line(f"{cores}; each machine that searches holds the index in memory"))
    screen.print()
    for remark in _remarks(plan):
        screen.print(line(remark), soft_wrap=True)


def _tables(plan: Plan) -> Iterator[Table]:
    """Stages, storage, search, cost drivers."""
    stages = table("stage", "on one machine", "photos a second", "shared by machines", "")
    for stage in plan.stages:
        shares = "yes" if stage.spreads else "no"
        stages.add_row(stage.name, _time(stage.hours), _number(1 / stage.seconds), shares, stage.basis)
    yield stages
    storage = table("kept", "where", "", "")
    for part in plan.storage:
        storage.add_row(part.name, part.where, _bytes(part.bytes), part.basis)
    yield storage
    search = table("references", "cells", "probes", "codes looked at", "p50, ms", "p99, ms", "")
    for each in plan.search:
        counts = (each.references, each.cells, each.probes, round(each.codes))
        search.add_row(*(f"{count:,}" for count in counts), f"{each.p50_ms:.2f}", f"{each.p99_ms:.2f}", each.basis)
    yield search
    priced = any(driver.cost is not None for driver in plan.drivers)
    drivers = table("cost drivers" + ", the dearest first" * priced, "amount", "", "cost" * priced)
    for driver in plan.drivers:
        cost = "" if driver.cost is None else f"{driver.cost:,.2f}"
        every = " each month" if driver.every == "month" else ""
        drivers.add_row(driver.name, _number(driver.amount), driver.unit + every, cost)
    yield drivers


def _remarks(plan: Plan) -> Iterator[str]:
    yield "Assumed:"
    yield from (f"- {each}" for each in plan.assumptions)
    yield "Measured by (docs/scale.md has all of it):"
    yield from (f"- {each}" for each in dict.fromkeys(source for stage in plan.stages for source in stage.sources))


def _time(hours: float) -> str:
    """In the unit that a person would say it in."""
    units = ((_YEAR, "years"), (_DAY, "days"), (1, "hours"), (1 / 60, "minutes"), (1 / 3600, "seconds"))
    size, name = next((each for each in units if hours >= 2 * each[0]), units[-1])
    return f"{_number(hours / size)} {name}"


def _bytes(count: float) -> str:
    units = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
    size, name = next((each for each in units if count >= each[0]), units[-1])
    return f"{_number(count / size)} {name}"


def _number(value: float) -> str:
    """Three digits that count, and all of those before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
