"""homing cluster: add and activate with many processes, on one machine or on a Ray cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homing.cli._app import App, PhotoSources
from homing.cli._console import JsonFlag, console, print_json, table
from homing.cli._outcomes import ACTIVATED, ADDED, as_json, count_outcomes, write_activation_report
from homing.cli.photos import ActivateOptions, Out, Report, prepare_activation

if TYPE_CHECKING:
    from homing.cluster import Throughput
    from homing.collection import Outcome
    from homing.collection.outcome import OutcomeCallback

app = App(help="Add and activate photos by the million, with Ray.", no_args_is_help=True)

CollectionAddress = Annotated[
    str, typer.Option("--collection", metavar="COLLECTION", help="The collection's folder, or its address.")
]
Address = Annotated[
    str | None,
    typer.Option(
        help="The Ray cluster: HOST:PORT, or auto for the one this machine belongs to.",
        show_default="this machine only",
    ),
]
WorkerCount = Annotated[
    int | None,
    typer.Option(
        min=1, help="Processes that run the network, on one core each.", show_default="one per GPU, else one per core"
    ),
]
GpuCount = Annotated[int | None, typer.Option(min=0, help="GPUs to use.", show_default="all")]


@app.command()
def add(
    photos: PhotoSources,
    collection: CollectionAddress,
    workers: WorkerCount = None,
    gpus: GpuCount = None,
    address: Address = None,
    json: JsonFlag = False,
) -> None:
    """Index photos as they are, like homing add.

    Examples:

        homing cluster add s3://bucket/photos --collection agency.homing

        homing cluster add /mnt/photos --collection agency.homing --address auto --gpus 4
    """

    def job(found: Any, on_outcome: OutcomeCallback) -> list[Throughput]:
        from homing import cluster

        resources = cluster.Resources(address=address, workers=workers, gpus=gpus)
        return cluster.add(found, collection, resources=resources, on_outcome=on_outcome)

    _run(photos, "Adding", ADDED, json, job)


@app.command()
def activate(
    *,
    photos: PhotoSources,
    collection: CollectionAddress,
    out: Out,
    options: ActivateOptions,
    workers: WorkerCount = None,
    gpus: GpuCount = None,
    address: Address = None,
    report: Report = None,
    json: JsonFlag = False,
) -> None:
    """Index photos, activate them and write the files to release, like homing activate.

    Examples:

        homing cluster activate s3://bucket/photos --collection agency.homing --out s3://bucket/released

        homing cluster activate /mnt/photos --collection agency.homing --out /mnt/released --gpus 1 --workers 8
    """
    keywords = prepare_activation(options, report)

    def job(found: Any, on_outcome: OutcomeCallback) -> list[Throughput]:
        from homing import cluster

        resources = cluster.Resources(address=address, workers=workers, gpus=gpus)
        return cluster.activate(found, collection, out, resources=resources, on_outcome=on_outcome, **keywords)

    _run(photos, "Activating", ACTIVATED, json, job, report)


def _run(
    photos: list[str],
    description: str,
    labels: dict[str, str],
    json: bool,
    job: Callable[[Any, OutcomeCallback], list[Throughput]],
    report: Path | None = None,
) -> None:
    """Run a job on photos and print its outcomes and the throughput of its stages. Ends the command."""
    from homing._imports import load_extra
    from homing.photo import find_photos

    load_extra("ray", "ray")
    found = find_photos(photos)
    kept: list[Outcome] = []
    started = time.perf_counter()
    # Ray reports dead workers on stdout, which is for results only.
    with count_outcomes(description, len(found), labels) as tally, redirect_stdout(sys.stderr):

        def on_outcome(outcome: Outcome) -> None:
            tally.count(outcome)
            if report is not None or outcome.state == "failed":  # millions of others would take too much memory
                kept.append(outcome)

        stages = job(found, on_outcome)
    seconds = time.perf_counter() - started
    if report is not None:
        write_activation_report(kept, report)
    if json:
        rates = [asdict(stage) | {"photos_per_second": stage.photos_per_second} for stage in stages]
        failed = [as_json(outcome) for outcome in kept if outcome.state == "failed"]
        print_json({"counts": tally.counts, "failed": failed, "seconds": seconds, "stages": rates})
    else:
        console.print(tally.summary())
        _print_stages(stages, sum(tally.counts.values()), seconds)
        if report is not None:
            console.print(f"The report: {report}")
    tally.exit()


def _print_stages(stages: list[Throughput], photos: int, seconds: float) -> None:
    rows = table("stage", "photos", "worker seconds", "photos/s per worker")
    for stage in stages:
        rows.add_row(stage.stage, f"{stage.photos:,}", f"{stage.seconds:.1f}", f"{stage.photos_per_second:.1f}")
    rows.add_row("all", f"{photos:,}", f"{seconds:.1f} elapsed", f"{photos / seconds:.1f} in total")
    console.print(rows)
