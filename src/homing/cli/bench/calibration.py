"""homing bench calibration: whether chances of false matches are what they are said to be."""

from __future__ import annotations

from typing import Annotated

import typer

from homing.cli._console import JsonFlag
from homing.cli.bench._common import (
    CodebookNames,
    DistractorPhotos,
    Out,
    check_out_folder,
    command_line,
    resumable_progress,
    write_and_print,
)


def calibration(
    context: typer.Context,
    distractor_photos: DistractorPhotos,
    out: Out,
    distractors: Annotated[
        int, typer.Option(help="How many of them, whole: each half is searched for in the other.")
    ] = (20_000),
    codebook: CodebookNames = None,
    exclude_related: Annotated[
        bool,
        typer.Option(
            "--exclude-related", help="Lay the 300 nearest pairs over each other; those that show one scene are none."
        ),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Measure how often unrelated photos come as near as the chance that a match carries says they do.

    The photos must be related neither to each other nor to those the codebook knows its distances from. Those that are
    related to each other all the same can be left out (it needs the extra `demo`).

    Example:

        homing bench calibration --distractor-photos others/ --distractors 20000 --out calibration/
    """
    from homing.evaluation.benches.calibration import CalibrationBench, run_calibration_bench
    from homing.evaluation.benches.calibration_results import results, terminal_table

    check_out_folder(context, out)
    bench = CalibrationBench(
        distractor_photos=distractor_photos,
        out=out,
        distractors=distractors,
        codebooks=codebook or ["homing-1"],
        exclude_related=exclude_related,
    )
    result = run_calibration_bench(bench, resumable_progress)
    write_and_print(results(result, command_line(context)), out, terminal_table(result), as_json=json)
