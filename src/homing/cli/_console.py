"""The console: results on stdout, messages on stderr, one JSON document with --json; and shared arguments."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

# No markup: file names may contain square brackets. Wide when piped, so that no line wraps.
console = Console(markup=False, width=None if sys.stdout.isatty() else 1000)
err_console = Console(markup=False, stderr=True)

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
CollectionPath = Annotated[
    str, typer.Argument(metavar="COLLECTION", help="The collection's folder, or its address: s3://bucket/photos.lance.")
]
PhotoPaths = Annotated[
    list[Path], typer.Argument(metavar="PHOTO_OR_FOLDER…", readable=False, help="Photos, or folders of photos.")
]
_SOURCES = typer.Argument(
    metavar="PHOTO_OR_FOLDER…", help="Photos, or folders of photos: paths, or addresses such as s3://bucket/photos."
)
PhotoSources = Annotated[list[str], _SOURCES]
OptionalPhotoSources = Annotated[list[str] | None, _SOURCES]


def print_json(document: Any) -> None:
    """Print one JSON document on stdout, with null for infinity, which is the PSNR of two equal photos."""
    typer.echo(json.dumps(_without_infinity(document), indent=2, default=str, allow_nan=False))


def _without_infinity(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_infinity(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinity(each) for each in value]
    return None if value == math.inf else value


def table(*headings: str) -> Table:
    """A table without borders."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        result.add_column(heading, overflow="fold")
    return result


def print_rows(rows: list[dict[str, object]], json: bool) -> None:
    """Print rows as a table, or as one JSON document."""
    if json:
        print_json(rows)
        return
    result = table(*rows[0])
    for row in rows:
        result.add_row(*(str(value)[:12] if name == "fingerprint" else str(value) for name, value in row.items()))
    console.print(result)


def print_key_values(facts: dict[str, object]) -> None:
    """Print names and values, one pair a line."""
    result = Table(box=None, show_header=False, pad_edge=False)
    for name, value in facts.items():
        result.add_row(Text(name, style="bold"), one_line(value))
    console.print(result)


def one_line(text: object, style: str = "") -> Text:
    """The text as one line: line breaks and control characters, which file names may contain, are escaped."""
    printable = (each if each.isprintable() else each.encode("unicode_escape").decode() for each in str(text))
    return Text("".join(printable), style=style)


def report_error(error: object) -> int:
    """Print an error as one line; returns the exit code of a wrong call."""
    err_console.print(one_line(f"homing: {error}", "red"), soft_wrap=True)
    return 2
