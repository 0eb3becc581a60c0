"""The console: results on stdout, messages on stderr, one JSON document with --json."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

# No markup: file names may contain square brackets. Wide when piped, so that no line wraps.
console = Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else 1000)
err_console = Console(markup=False, highlight=False, stderr=True)

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


def print_json(document: Any) -> None:
    """Print one JSON document on stdout, with null for infinity, which is the PSNR of two equal photos."""
    typer.echo(json.dumps(_without_infinity(document), indent=2, default=_as_text, allow_nan=False))


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


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


def print_remark(kind: str, text: object, style: str = "yellow") -> None:
    """Print one line on stderr about a photo, such as: failed    beach.jpg: no such file."""
    err_console.print(one_line(f"{kind:9} {text}", style), soft_wrap=True)


def print_failure(text: object) -> None:
    """Print one line on stderr about a photo that failed."""
    print_remark("failed", text, "red")


def report_error(error: object) -> int:
    """Print an error as one line; returns the exit code of a wrong call."""
    err_console.print(one_line(f"homing: {error}", "red"), soft_wrap=True)
    return 2
