"""homing demo: what activation gains on a few real photos, as a table and a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homing.cli._console import JsonFlag, console, print_json, table
from homing.cli._progress import progress


def demo(
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = Path("demo"), json: JsonFlag = False
) -> None:
    """Release a few photos passive and activated, edit the files, search for the copies, and compare the recall.

    Example:

        homing demo
    """
    from homing.bench.demo import run_demo, steps

    with progress("Releasing, editing, searching", steps()) as advance:
        result = run_demo(out, advance)
    if json:
        print_json(result.as_json())
        return
    photos = len(result.outcomes)
    console.print(
        f"{result.headline}.\n{result.default_search}.\n\n"
        f"Recall by edit: {photos} photos among {result.distractors:,} distractors.\n",
        highlight=False,
    )
    rows = table("edit", "passive,\none probe", "activated,\none probe", "passive,\ndefault", "activated,\ndefault")
    for edit, recalls in result.rows():
        if edit == "mean":
            rows.add_section()
        rows.add_row(edit, *(f"{recall:.2f}" for recall in recalls))
    console.print(rows)
    console.print(
        f"\nMeans of the activated files: PSNR {result.mean('psnr'):.1f} dB, SSIM {result.mean('ssim'):.3f}, "
        f"L∞ {result.mean('linf'):.0f} of 255; {result.seconds_per_photo:.1f} s per photo.\n"
        f"Report with pictures: {result.report}",
        highlight=False,
    )
