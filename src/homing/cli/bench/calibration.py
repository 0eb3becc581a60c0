"""homing bench calibration: whether false-match probabilities are correct."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homing.cli._console import JsonFlag
from homing.cli.bench._common import (
    CodebookNames,
    Out,
    check_out_folder,
    command_line,
    resumable_progress,
    write_and_print,
)


def calibration(
    context: typer.Context,
    distractor_photos: Annotated[
        Path,
        typer.Option(help="Unrelated photos to search for in each other: a folder, or a .npy file of descriptors."),
    ],
    out: Out,
    distractors: Annotated[
        int,
        typer.Option(help="How many of these photos. One half is searched for in the other, and the other way round."),
    ] = 20_000,
    codebook: CodebookNames = None,
    exclude_related: Annotated[
        bool,
        typer.Option("--exclude-related", help="Align the 300 nearest pairs, and leave out those that show one scene."),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Measure whether unrelated photos match as often as false-match probabilities say.

    The photos must be unrelated to each other and to those of the codebook's null distribution. --exclude-related
    leaves out pairs that are related after all; it needs the extra `demo`.

    Example:

        homing bench calibration --distractor-photos others/ --distractors 20000 --out calibration/
    """
    from homing.bench.benches.calibration import CalibrationBench, run_calibration_bench
    from homing.bench.benches.calibration_results import results, terminal_table

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
