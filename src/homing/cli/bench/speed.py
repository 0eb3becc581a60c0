"""homing bench speed: what activation costs, beside the loop as the paper describes it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homing.cli._console import JsonFlag, progress
from homing.cli.bench._common import Limit, check_out_folder, command_line, split_list, write_and_print
from homing.errors import HomingError


def speed(
    context: typer.Context,
    photos: Annotated[
        Path | None, typer.Option(help="The photos to activate.", show_default="the demo's, as JPEG files")
    ] = None,
    codebook: Annotated[str, typer.Option(help="A name or a file.")] = "homing-1",
    recipes: Annotated[
        str, typer.Option(help="Recipes of the engine, with commas between; paper is always among them.")
    ] = "paper,homing-fast,homing",
    batches: Annotated[
        str | None,
        typer.Option(
            help="How many photos the loop moves at once, with commas between.", show_default="8, on a GPU 64"
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(help="How often each is timed, after a round that is not counted.")] = 3,
    limit: Limit = None,
    out: Annotated[Path, typer.Option(help="The folder for results.")] = Path("speed"),
    json: JsonFlag = False,
) -> None:
    """Measure what activation costs: the loop as the paper describes it against the engine, with the recall of both.

    The same photos in the same run: the loop alone with its memory, then file to file, and where the time goes.

    Example:

        homing bench speed --photos held-out/ --limit 32 --recipes paper,homing --out speed/
    """
    from homing.evaluation.benches.speed import SpeedBench, run_speed_bench
    from homing.evaluation.benches.speed_results import results, terminal_table

    check_out_folder(context, out)
    bench = SpeedBench(
        out=out,
        photos=photos,
        codebook=codebook,
        recipes=split_list(recipes),
        batches=_numbers(batches) if batches is not None else None,
        rounds=rounds,
        limit=limit,
    )
    result = run_speed_bench(bench, progress)
    write_and_print(results(result, command_line(context)), out, terminal_table(result), as_json=json)


def _numbers(text: str) -> list[int]:
    for word in split_list(text):
        if not word.isdecimal():
            raise HomingError(f"batches are whole numbers with commas between, got '{word}'")
    return [int(word) for word in split_list(text)]
