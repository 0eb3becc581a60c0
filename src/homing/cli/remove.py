"""homing remove: remove references from a collection."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from homing.cli._console import CollectionPath, JsonFlag, console, err_console, one_line, print_json
from homing.cli._jobs import as_json


def remove(
    collection: CollectionPath,
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="ID_OR_PATH…",
            help="Ids of references, the paths they were added from, or folders of these. A number is an id; write ./7"
            " for a file called 7.",
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    json: JsonFlag = False,
) -> None:
    """Remove references, so that no search finds them. Photos and released files are not deleted.

    Examples:

        homing remove holiday.homing photos/beach.jpg

        homing remove holiday.homing photos/2019/ 12 15 --yes
    """
    from homing.collection import Collection

    with Collection.open(collection) as opened:
        named = opened.select([int(each) if each.isdecimal() else each for each in what])
        asked = named.ids and not yes and sys.stdin.isatty()
        if asked and not typer.confirm(f"Remove {_count(len(named.ids))} from {collection}?", err=True):
            console.print("Nothing was removed.")
            return
        outcomes = [*(opened.remove(named.ids) if named.ids else []), *named.unknown]
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    for outcome in failed:
        err_console.print(one_line(f"failed    {outcome.photo}: {outcome.reason}", "red"), soft_wrap=True)
    if json:
        print_json([as_json(outcome) for outcome in outcomes])
    else:
        removed, released = len(outcomes) - len(failed), sum(outcome.released is not None for outcome in outcomes)
        left = f" The released files of {released:,} of them were not deleted." if released else ""
        console.print(f"{_count(removed)} removed.{left}", highlight=False)
    raise typer.Exit(int(bool(failed)))


def _count(references: int) -> str:
    return f"{references:,} reference{'s' * (references != 1)}"
