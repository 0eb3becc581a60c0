"""homing explain and compare: why a reference is found, and how much a released photo differs from its original."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

import homing
from homing._io.files import prepare_output_file
from homing.cli._app import CollectionPath, id_or_path
from homing.cli._console import JsonFlag, console, err_console, one_line, print_json, print_key_values, table
from homing.errors import HomingError

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
    from homing.reports import write_explanation

    if out is not None:
        prepare_output_file(out, ".html")
    with homing.Collection.open(collection) as opened:
        given = id_or_path(photo)
        if isinstance(given, int) and Path(photo).is_file():
            given = photo
        explanation = homing.explain.explain(opened, given, edits=edits)
    if out is not None:
        write_explanation(explanation, out)
    if json:
        print_json(asdict(explanation))
        return
    _print_explanation(explanation)
    if out is not None:
        console.print(f"\nThe page: {out}")


def _print_explanation(it: homing.explain.Explanation) -> None:
    print_key_values(
        {
            "photo": it.photo,
            "reference": f"{it.id:,}, {it.state}" + ("" if it.cell is None else f", in cell {it.cell}"),
            "original": _where(it.original),
            **({"released": _where(it.released)} if it.released else {}),
        }
    )
    if it.edits:
        console.print("", _edits_table(it))
    where = "to it" if it.cell is None else "in its cell"
    rows = table("distance", f"nearest {where}", "state")
    for match in it.neighbors:
        rows.add_row(f"{match.distance:.3f}", one_line(match.photo), match.state)
    console.print()
    console.print(rows if it.neighbors else f"nearest {where}: nothing else")
    for missing in it.missing:
        err_console.print(one_line(missing, "yellow"), soft_wrap=True)


def _edits_table(it: homing.explain.Explanation) -> Table:
    from homing.collection.search import format_probability

    rows = table("\nedit", "before,\none probe", "now,\none probe", "now,\ndefault search", "\nfalse match")
    for each in it.edits:
        found = (_FOUND_LABELS[found] for found in (each.before, each.one_probe, each.default))
        probability = each.false_match_probability
        rows.add_row(each.edit, *found, "" if probability is None else format_probability(probability))
    return rows


def _where(position: homing.explain.Position) -> str:
    margin = "" if position.margin is None else f", margin to the next cell {position.margin:+.4f}"
    return f"{position.distance:.3f} from its code{margin}"


def compare(
    original: Annotated[Path, typer.Argument(help="The original photo.")],
    released: Annotated[Path, typer.Argument(help="The released photo.")],
    out: Annotated[
        Path | None, typer.Option(help="Write a PNG file with both photos and their difference ×20.")
    ] = None,
    lpips: Annotated[
        bool, typer.Option("--lpips", help="Measure LPIPS as well. It needs homing[lpips] and the weights of AlexNet.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Measure PSNR, SSIM and the largest change of a pixel (L∞, of 255), and draw the difference.

    Examples:

        homing compare beach.jpg released/beach.jpg

        homing compare beach.jpg released/beach.jpg --out difference.png
    """
    from homing.imaging import comparison, save_png
    from homing.perception.quality import load_lpips

    if out is not None and out.exists() and any(out.samefile(photo) for photo in (original, released)):
        raise HomingError(f"--out {out} is one of the photos and would be overwritten; choose another --out")
    if out is not None:
        prepare_output_file(out, ".png")
    before, after = homing.Photo.load(original).pixels(), homing.Photo.load(released).pixels()
    quality = homing.perception.measure(before, after)
    extra = {"lpips": load_lpips()(before, after)} if lpips else {}
    if out is not None:
        save_png(comparison(before, after), out)
    if json:
        print_json(asdict(quality) | extra)
    else:
        lpips_text = f", LPIPS {extra['lpips']:.4f}" if lpips else ""
        console.print(f"{quality}{lpips_text}" + (f". Picture: {out}" if out else ""))
