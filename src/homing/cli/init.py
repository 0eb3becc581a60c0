"""homing init: a new, empty collection."""

from __future__ import annotations

from typing import Annotated

import typer

from homing.cli._screen import CollectionPath, screen


def init(
    collection: CollectionPath,
    codebook: Annotated[str, typer.Option(help="A bundled codebook's name, or a file of your own.")] = "homing-1",
    with_background: Annotated[
        bool, typer.Option("--with-background", help="Put the codes of COCO photos in, as strangers to search among.")
    ] = False,
) -> None:
    """Make a new collection.

    Examples:

        homing init holiday.homing

        homing init trial.homing --with-background
    """
    from homing.collection import Collection

    with Collection.create(collection, codebook=codebook, with_background=with_background) as made:
        about = made.info()
    strangers = f" among {about.background:,} strangers" if about.background else ""
    screen.print(f"Made {collection}: codebook {about.codebook} ({about.spec}){strangers}.", highlight=False)
