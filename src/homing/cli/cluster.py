"""homing cluster: add and activate with many processes, on one machine or on a Ray cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import homing
from homing._imports import load_extra
from homing._options import Option, setting
from homing.cli._app import App, PhotoSources
from homing.cli._console import JsonFlag, console, table
from homing.cli._outcomes import ACTIVATED, ADDED, Tally, as_json, count_outcomes, finish
from homing.cli.photos import ActivateOptions, Out, Report, prepare_activation

app = App(help="Add and activate photos by the million, with Ray.", no_args_is_help=True)

CollectionAddress = Annotated[
    str, typer.Option("--collection", metavar="COLLECTION", help="The collection's folder, or its address.")
]


@dataclass(frozen=True, kw_only=True)
class ResourceOptions:
    """Where a job runs: the fields of `homing.cluster.Resources`."""

    workers: int | None = setting(
        Option(
            "Processes that run the network, on one core each.",
            default_text="one per GPU, else one per core",
            minimum=1,
        ),
        None,
    )
    gpus: int | None = setting(Option("GPUs to use.", default_text="all", minimum=0), None)
    address: str | None = setting(
        Option(
            "The Ray cluster: HOST:PORT, or auto for the one this machine belongs to.", default_text="this machine only"
        ),
        None,
    )


@app.command()
def add(
    *, photos: PhotoSources, collection: CollectionAddress, resources: ResourceOptions, json: JsonFlag = False
) -> None:
    """Index photos as they are, like homing add.

    Examples:

        homing cluster add s3://bucket/photos --collection agency.homing

        homing cluster add /mnt/photos --collection agency.homing --address auto --gpus 4
    """
    _run(photos, "Adding", ADDED, resources, json, partial(homing.cluster.add, collection=collection))


@app.command()
def activate(
    *,
    photos: PhotoSources,
    collection: CollectionAddress,
    out: Out,
    options: ActivateOptions,
    resources: ResourceOptions,
    report: Report = None,
    json: JsonFlag = False,
) -> None:
    """Index photos, activate them and write the files to release, like homing activate.

    Examples:

        homing cluster activate s3://bucket/photos --collection agency.homing --out s3://bucket/released

        homing cluster activate /mnt/photos --collection agency.homing --out /mnt/released --gpus 1 --workers 8
    """
    keywords = prepare_activation(options, report)
    job = partial(homing.cluster.activate, collection=collection, out=out, **keywords)
    _run(photos, "Activating", ACTIVATED, resources, json, job, report)


def _run(
    photos: list[str],
    description: str,
    labels: dict[str, str],
    resources: ResourceOptions,
    json: bool,
    job: Callable[..., list[homing.cluster.Throughput]],
    report: Path | None = None,
) -> None:
    """Run a job on photos, and print its outcomes and the throughput of its stages. Ends the command."""
    load_extra("ray", "ray")
    found = homing.photo.find_photos(photos)
    stages: list[homing.cluster.Throughput] = []
    started, seconds = time.perf_counter(), 0.0

    def document(tally: Tally) -> object:
        rates = [asdict(stage) | {"photos_per_second": stage.photos_per_second} for stage in stages]
        failed = [as_json(outcome) for outcome in tally.outcomes if outcome.state == "failed"]
        elapsed = seconds or time.perf_counter() - started
        return {"counts": tally.counts, "failed": failed, "seconds": elapsed, "stages": rates}

    def keep(outcome: homing.Outcome) -> bool:
        return report is not None or outcome.state == "failed"  # millions of others would take too much memory

    json_document = document if json else None
    # Ray reports dead workers on stdout, which is for results only.
    with count_outcomes(description, len(found), labels, json_document, keep) as tally, redirect_stdout(sys.stderr):
        stages += job(found, resources=homing.cluster.Resources(**vars(resources)), on_outcome=tally.count)
    seconds = time.perf_counter() - started
    finish(tally, json_document, report, lambda: _print_stages(stages, sum(tally.counts.values()), seconds))


def _print_stages(stages: list[homing.cluster.Throughput], photos: int, seconds: float) -> None:
    rows = table("stage", "photos", "worker seconds", "photos/s per worker")
    for stage in stages:
        rows.add_row(stage.stage, f"{stage.photos:,}", f"{stage.seconds:.1f}", f"{stage.photos_per_second:.1f}")
    rows.add_row("all", f"{photos:,}", f"{seconds:.1f} elapsed", f"{photos / seconds:.1f} in total")
    console.print(rows)
