"""homing cluster: add and activate by many processes, on this machine or on those of a Ray cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homing.cli import activate as one_machine
from homing.cli._jobs import Tally, as_json
from homing.cli._screen import AsJson, PhotoPlaces, print_json, progress, screen, table
from homing.cli.add import WORDS

if TYPE_CHECKING:
    from homing.cluster import Throughput
    from homing.collection import Outcome

app = typer.Typer(help="Add and activate photos by the million, with Ray.", no_args_is_help=True)

CollectionAddress = Annotated[
    str, typer.Option("--collection", metavar="COLLECTION", help="The collection's folder, or its address.")
]
Address = Annotated[
    str | None,
    typer.Option(
        help="The Ray cluster to work on: HOST:PORT, or auto, the one this machine is in.",
        show_default="this machine alone",
    ),
]
WorkerCount = Annotated[
    int | None,
    typer.Option(
        min=1, help="Processes that hold the network, each on one core.", show_default="one for each GPU, or each core"
    ),
]
GpuCount = Annotated[int | None, typer.Option(min=0, help="GPUs to use.", show_default="all there are")]


@app.callback()
def _group() -> None:
    """Add and activate photos by the million, with Ray."""


@app.command()
def add(
    photos: PhotoPlaces,
    collection: CollectionAddress,
    workers: WorkerCount = None,
    gpus: GpuCount = None,
    address: Address = None,
    json: AsJson = False,
) -> None:
    """Index photos as they are, as homing add does.

    Examples:

        homing cluster add s3://bucket/photos --collection agency.homing

        homing cluster add /mnt/photos --collection agency.homing --address auto --gpus 4
    """

    def job(found: Any, report: Callable[[Outcome], None]) -> list[Throughput]:
        from homing import cluster

        machines = cluster.Machines(address=address, workers=workers, gpus=gpus)
        return cluster.add(found, collection, machines=machines, report=report)

    _run(photos, "Adding", WORDS, json, job)


@app.command()
def activate(
    photos: PhotoPlaces,
    collection: CollectionAddress,
    out: one_machine.Out,
    recipe: one_machine.RecipeName = "homing",
    budget: one_machine.BudgetName = None,
    psnr: one_machine.Psnr = None,
    alpha: one_machine.Alpha = None,
    format: one_machine.Format = None,
    workers: WorkerCount = None,
    gpus: GpuCount = None,
    address: Address = None,
    json: AsJson = False,
) -> None:
    """Index photos, activate them, and write what may be released, as homing activate does.

    Examples:

        homing cluster activate s3://bucket/photos --collection agency.homing --out s3://bucket/released

        homing cluster activate /mnt/photos --collection agency.homing --out /mnt/released --gpus 1 --workers 8
    """
    chosen = one_machine.chosen_recipe(recipe, budget, psnr, alpha)

    def job(found: Any, report: Callable[[Outcome], None]) -> list[Throughput]:
        from homing import cluster

        machines = cluster.Machines(address=address, workers=workers, gpus=gpus)
        return cluster.activate(found, collection, out, recipe=chosen, format=format, machines=machines, report=report)

    _run(photos, "Activating", one_machine.WORDS, json, job)


def _run(
    photos: list[str],
    description: str,
    words: dict[str, str],
    json: bool,
    job: Callable[[Any, Callable[[Outcome], None]], list[Throughput]],
) -> None:
    from homing._extras import load_extra
    from homing.photo import gather

    load_extra("ray", "ray")
    found, tally, failed = gather(photos), Tally(words), []
    started = time.perf_counter()
    # Ray tells of workers that died on the screen, where our own output alone is to be.
    with progress(description, len(found), resumable=True) as advance, redirect_stdout(sys.stderr):
        tell = tally.reporter(advance)

        def report(outcome: Outcome) -> None:
            tell(outcome)
            if outcome.state == "failed" and json:
                failed.append(as_json(outcome))

        stages = job(found, report)
    seconds = time.perf_counter() - started
    if json:
        rates = [asdict(stage) | {"photos_per_second": stage.rate} for stage in stages]
        print_json({"counts": tally.counts, "failed": failed, "seconds": seconds, "stages": rates})
    else:
        screen.print(tally.summary(), highlight=False)
        _print_stages(stages, sum(tally.counts.values()), seconds)
    raise typer.Exit(int(tally.counts["failed"] > 0))


def _print_stages(stages: list[Throughput], photos: int, seconds: float) -> None:
    shown = table("stage", "photos", "seconds of work", "photos a second each")
    for stage in stages:
        shown.add_row(stage.stage, f"{stage.photos:,}", f"{stage.seconds:.1f}", f"{stage.rate:.1f}")
    shown.add_row("all", f"{photos:,}", f"{seconds:.1f} from start to end", f"{photos / seconds:.1f} in all")
    screen.print(shown)
