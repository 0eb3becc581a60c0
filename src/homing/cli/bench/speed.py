"""homing bench speed: the time that activation takes, compared with the loop of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homing.cli._console import JsonFlag
from homing.cli._progress import progress
from homing.cli.bench._common import Limit, check_out_folder, command_line, split_list, write_and_print
from homing.errors import HomingError


def speed(
    context: typer.Context,
    photos: Annotated[
        Path | None, typer.Option(help="The photos to activate.", show_default="those of the demo, as JPEG files")
    ] = None,
    codebook: Annotated[str, typer.Option(help="A codebook: a name or a file.")] = "homing-1",
    recipes: Annotated[
        str, typer.Option(help="Comma-separated recipes; paper is always measured.")
    ] = "paper,homing-fast,homing",
    batches: Annotated[
        str | None,
        typer.Option(help="Comma-separated batch sizes of the loop.", show_default="8, on a GPU 64"),
    ] = None,
    rounds: Annotated[int, typer.Option(help="How often each is timed, after a warm-up round.")] = 3,
    limit: Limit = None,
    out: Annotated[Path, typer.Option(help="The folder for results.")] = Path("speed"),
    json: JsonFlag = False,
) -> None:
    """Measure the time and memory of activation: the plain loop of the paper and homing, with the recall of both.

    Both process the same photos in one run: first the loop alone, then from file to file, with the time per stage.

    Example:

        homing bench speed --photos held-out/ --limit 32 --recipes paper,homing --out speed/
    """
    from homing.bench.benches.speed import SpeedBench, run_speed_bench
    from homing.bench.benches.speed_results import results, terminal_table

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
            raise HomingError(f"--batches takes comma-separated whole numbers, got '{word}'")
    return [int(word) for word in split_list(text)]
