"""homing bench analysis: why edited copies are found."""

from __future__ import annotations

import typer

from homing.cli._console import JsonFlag
from homing.cli.bench._common import (
    CodebookNames,
    DistractorCount,
    DistractorPhotos,
    Limit,
    Out,
    Photos,
    RecipeNames,
    check_out_folder,
    command_line,
    resumable_progress,
    split_list,
    write_and_print,
)


def analysis(
    context: typer.Context,
    photos: Photos,
    out: Out,
    distractor_photos: DistractorPhotos = None,
    distractors: DistractorCount = 300_000,
    codebook: CodebookNames = None,
    recipes: RecipeNames = "passive,paper",
    limit: Limit = None,
    json: JsonFlag = False,
) -> None:
    """Measure why edited copies are found: distances to their codes, and how many fall into another cell.

    The bench also checks that activated photos do not change the results for the others. Run the same command again to
    resume it.

    Example:

        homing bench analysis --photos held-out/ --out analysis/
    """
    from homing.bench.benches.analysis import AnalysisBench, run_analysis_bench
    from homing.bench.benches.analysis_results import results, terminal_table

    check_out_folder(context, out)
    bench = AnalysisBench(
        photos=photos,
        distractor_photos=distractor_photos,
        out=out,
        distractors=distractors,
        codebooks=codebook or ["homing-1"],
        recipes=split_list(recipes),
        limit=limit,
    )
    result = run_analysis_bench(bench, resumable_progress)
    write_and_print(results(result, command_line(context)), out, terminal_table(result), as_json=json)
