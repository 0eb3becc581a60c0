"""homing export and import: a collection in formats that other software reads."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

import homing
from homing.cli._app import CollectionPath
from homing.cli._console import JsonFlag, console, print_json


def export(
    collection: CollectionPath,
    out: Annotated[str, typer.Option(help="The folder to write; it must not exist.")],
    format: Annotated[
        str,
        typer.Option(
            help="parquet: references, codes, descriptors and releases, for homing import. faiss: an index for FAISS, "
            "and ids. arrays: the quantizer for NumPy."
        ),
    ] = "parquet",
    json: JsonFlag = False,
) -> None:
    """Write a collection in a format that other software reads. A README.md in the folder says how.

    Examples:

        homing export holiday.homing --out holiday-parquet

        homing export holiday.homing --out holiday-faiss --format faiss
    """
    with homing.Collection.open(collection) as opened:
        done = opened.export(out, format=format)
    if json:
        print_json(asdict(done))
    else:
        console.print(f"Exported {done.photos:,} photos to {out}: {', '.join(done.files)}.")


def import_(
    collection: CollectionPath,
    export: Annotated[
        str, typer.Argument(metavar="EXPORT_FOLDER", help="A folder that homing export wrote as Parquet.")
    ],
) -> None:
    """Make a new collection from a Parquet export. Its search results are those of the exported one.

    Example:

        homing import again.homing holiday-parquet
    """
    with homing.Collection.from_export(collection, export) as made:
        about = made.info()
    console.print(f"Made {collection}: {about.photos:,} photos, codebook {about.codebook}.")
