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
        typer.Option(
            "--replace", help="Let a photo take the place of the one that was added from the same path before."
        ),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Index photos as they are, so that copies of them can be found.

    Photos that are known, but whose files were moved, are found at their new place from then on.

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
        lambda opened, report: opened.add(photos, replace=replace, report=report),
    )
