"""homing init: make an empty collection."""

from __future__ import annotations

from typing import Annotated

import typer

from homing.cli._console import CollectionPath, console


def init(
    collection: CollectionPath,
    codebook: Annotated[str, typer.Option(help="The name of a bundled codebook, or a file.")] = "homing-1",
    with_distractors: Annotated[
        bool,
        typer.Option(
            "--with-distractors",
            help="Include the codes of photos of COCO train2017 as distractors, for trials (118,287 for homing-1).",
        ),
    ] = False,
) -> None:
    """Make an empty collection.

    Examples:

        homing init holiday.homing

        homing init trial.homing --with-distractors
    """
    from homing.collection import Collection

    with Collection.create(collection, codebook=codebook, with_distractors=with_distractors) as made:
        about = made.info()
    distractors = f" among {about.distractors:,} distractors" if about.distractors else ""
    console.print(f"Made {collection}: codebook {about.codebook} ({about.spec}){distractors}.", highlight=False)
