"""homing list: the references of a collection."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from typing import Annotated, Literal

import typer

from homing.cli._console import CollectionPath, JsonFlag, console, one_line, print_json


def list_references(
    collection: CollectionPath,
    state: Annotated[
        Literal["passive", "activated", "unchanged"] | None,
        typer.Option(help="List only references in this state.", show_default="all"),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="TEXT", help="List only references whose file name contains this text.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="List at most this many references.", show_default="all")
    ] = None,
    after: Annotated[
        int | None,
        typer.Option(metavar="ID", min=0, help="List references after this id, to continue an earlier list."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """List the references of a collection, in the order of their ids.

    --json adds the hash and the released files of each reference, with their quality.

    Examples:

        homing list holiday.homing

        homing list holiday.homing --state passive --name beach

        homing list holiday.homing --limit 100 --after 1200 --json
    """
    from homing.collection import Collection

    with Collection.open(collection) as opened:
        # One more than asked for shows whether there is a next page.
        found = opened.references(state=state, name_contains=name, after=after, limit=limit and limit + 1)
        references = islice(found, limit)
        if json:
            print_json([asdict(reference) for reference in references])
            return
        row = "{:>9}  {:9}  {:16}  {}".format
        console.print(one_line(row("id", "state", "added (UTC)", "photo"), "bold"), soft_wrap=True)
        count, last = 0, after
        for reference in references:  # printed one by one: a table of a million rows would wait for the last
            added = f"{reference.added:%Y-%m-%d %H:%M}"
            line = row(reference.id, reference.state, added, reference.photo)
            console.print(one_line(line), soft_wrap=True)
            count, last = count + 1, reference.id
        more = "" if next(found, None) is None else f" The next page: --after {last}"
    console.print(f"{count:,} {'reference' if count == 1 else 'references'}.{more}", highlight=False)
