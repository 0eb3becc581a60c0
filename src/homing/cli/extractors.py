"""homing extractors: list networks, and fetch the published weights of some."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homing.cli._app import App
from homing.cli._console import JsonFlag, console, print_rows
from homing.cli._progress import download_progress
from homing.errors import HomingError

app = App()


@app.callback(invoke_without_command=True)
def extractors(context: typer.Context, json: JsonFlag = False) -> None:
    """List the networks that compute descriptors of photos. Some must be fetched first."""
    if context.invoked_subcommand is not None:
        if json:
            raise HomingError("--json belongs to the list: homing extractors --json")
        return
    from homing.extractors import available, fetched

    states = {name: "fetched" if there else "not fetched" for name, there in fetched().items()}
    print_rows(
        [{"name": name, "about": about, "weights": states.get(name, "")} for name, about in available().items()], json
    )


@app.command("fetch")
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The network.")],
    file: Annotated[
        Path | None,
        typer.Option(readable=False, help="Use this file, downloaded from the authors' address, and check it."),
    ] = None,
) -> None:
    """Download a network's weights from its authors' address into the cache folder, or resume a download.

    The cache folder is HOMING_CACHE, or else "homing" in your system's cache folder.

    Examples:

        homing extractors fetch sscd_disc_mixup

        homing extractors fetch sscd_disc_mixup --file sscd_disc_mixup.torchvision.pt
    """
    from homing import extractors

    with download_progress(f"Fetching {name}") as report:
        path = extractors.fetch(name, file=file, report=report)
    console.print(f"{name} is fetched: {path}", soft_wrap=True)
