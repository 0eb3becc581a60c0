"""homing add: index photos as they are."""

from __future__ import annotations

from typing import Annotated

import typer

from homing.cli._console import CollectionPath, JsonFlag, PhotoSources
from homing.cli._jobs import run

STATE_LABELS = {
    "added": "added",
    "replaced": "replaced",
    "moved": "moved",
    "known": "known already",
    "failed": "failed",
}


def add(
    collection: CollectionPath,
    photos: PhotoSources,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace a reference if the file at its path has changed since it was added."),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Index photos as they are, so that copies of them can be found.

    If the file of a known photo has moved, its new path is recorded.

    Examples:

        homing add holiday.homing photos/

        homing add holiday.homing beach.jpg sunset.png

        homing add holiday.homing photos/ --replace
    """
    run(
        collection,
        photos,
        "Adding",
        STATE_LABELS,
        json,
        lambda opened, on_outcome: opened.add(photos, replace=replace, on_outcome=on_outcome),
    )
