"""homing explain: why a reference is found or not found."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli._console import (
    CollectionPath,
    JsonFlag,
    console,
    err_console,
    one_line,
    print_json,
    print_key_values,
    table,
)

if TYPE_CHECKING:
    from homing.explain import Explanation, Position

_FOUND_LABELS = {True: "found", False: "not found", None: "–"}


def explain(
    collection: CollectionPath,
    photo: Annotated[str, typer.Argument(metavar="PHOTO", help="A reference: its file, its released file, or its id.")],
    out: Annotated[Path | None, typer.Option(help="Write a page with pictures: FILE.html.")] = None,
    edits: Annotated[bool, typer.Option(help="Try the fourteen edits of the paper on the photo.")] = True,
    json: JsonFlag = False,
) -> None:
    """Explain why a reference is found: its cell and margin, distances to its code, neighbors, and edits it survives.

    Examples:

        homing explain holiday.homing photos/beach.jpg

        homing explain holiday.homing 17 --out beach.html
    """
    from homing._io.files import prepare_output_file
    from homing.collection import Collection
    from homing.explain import explain
    from homing.reports import write_explanation

    if out is not None:
        prepare_output_file(out, ".html")
    with Collection.open(collection) as opened:
        is_id = photo.isdecimal() and not Path(photo).is_file()
        explanation = explain(opened, int(photo) if is_id else photo, edits=edits)
    if out is not None:
        write_explanation(explanation, out)
    if json:
        print_json(asdict(explanation))
        return
    _show(explanation)
    if out is not None:
        console.print(f"\nThe page: {out}", highlight=False)


def _show(it: Explanation) -> None:
    from homing.collection.results import format_probability

    print_key_values(
        {
            "photo": it.photo,
            "reference": f"{it.id:,}, {it.state}" + ("" if it.cell is None else f", in cell {it.cell}"),
            "original": _where(it.original),
            **({"released": _where(it.released)} if it.released else {}),
        }
    )
    if it.edits:
        rows = table("\nedit", "before,\none probe", "now,\none probe", "now,\ndefault search", "\nfalse match")
        for each in it.edits:
            probability = (
                "" if each.false_match_probability is None else format_probability(each.false_match_probability)
            )
            rows.add_row(
                each.edit,
                _FOUND_LABELS[each.before],
                _FOUND_LABELS[each.one_probe],
                _FOUND_LABELS[each.default],
                probability,
            )
        console.print("", rows)
    where = "to it" if it.cell is None else "in its cell"
    rows = table("distance", f"nearest {where}", "state")
    for match in it.neighbors:
        rows.add_row(f"{match.distance:.3f}", one_line(match.photo), match.state)
    console.print()
    console.print(rows if it.neighbors else f"nearest {where}: nothing else")
    for missing in it.missing:
        err_console.print(one_line(missing, "yellow"), soft_wrap=True)


def _where(position: Position) -> str:
    margin = "" if position.margin is None else f", margin to the next cell {position.margin:+.4f}"
    return f"{position.distance:.3f} from its code{margin}"
