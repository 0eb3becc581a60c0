"""homing export, import: a collection in forms that need nothing of homing, and back."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from homing.cli._console import CollectionPath, JsonFlag, console, print_json


def export(
    collection: CollectionPath,
    out: Annotated[str, typer.Option(help="A new folder for it.")],
    format: Annotated[
        str,
        typer.Option(
            help="parquet: references, codes, descriptors and releases, which homing import reads; faiss: an index "
            "that FAISS reads by itself, and ids; arrays: the quantizer for NumPy."
        ),
    ] = "parquet",
    json: JsonFlag = False,
) -> None:
    """Write a collection in a form that needs nothing of homing. A README.md in the folder says how to read it.

    Examples:

        homing export holiday.homing --out holiday-parquet

        homing export holiday.homing --out holiday-faiss --format faiss
    """
    from homing.collection import Collection

    with Collection.open(collection) as opened:
        done = opened.export(out, format=format)
    if json:
        print_json(asdict(done))
    else:
        console.print(f"Exported {done.photos:,} photos to {out}: {', '.join(done.files)}.", highlight=False)


def import_(
    collection: CollectionPath,
    export: Annotated[Path, typer.Argument(metavar="EXPORT_FOLDER", help="What homing export wrote, as Parquet.")],
) -> None:
    """Make a new collection of a Parquet export. It gives the same answers.

    Example:

        homing import again.homing holiday-parquet
    """
    from homing.collection import Collection

    with Collection.from_export(collection, export) as made:
        about = made.info()
    console.print(f"Made {collection}: {about.photos:,} photos, codebook {about.codebook}.", highlight=False)
