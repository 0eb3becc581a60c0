"""homing bench search: what the options of a search add, and cost."""

from __future__ import annotations

from typing import Annotated

import typer

from homing.cli._console import JsonFlag
from homing.cli.bench._common import (
    CodebookNames,
    DistractorCount,
    DistractorPhotos,
    Limit,
    Out,
    Photos,
    check_out_folder,
    command_line,
    resumable_progress,
    write_and_print,
)


def search(
    context: typer.Context,
    photos: Photos,
    distractor_photos: DistractorPhotos,
    out: Out,
    distractors: DistractorCount = 300_000,
    codebook: CodebookNames = None,
    recipe: Annotated[
        str, typer.Option(help="How to activate: see homing recipes. Photos are released as they are, too.")
    ] = "homing",
    limit: Limit = None,
    json: JsonFlag = False,
) -> None:
    """Measure what each option of a search adds to the recall, and costs: margins, turned queries, ranking again.

    Every copy is described in five turns. Interrupted, the same command continues; what was described and released
    stays in the out folder.

    Example:

        homing bench search --photos held-out/ --distractor-photos others/ --distractors 100000 --out search/
    """
    from homing.evaluation.benches.search import SearchBench, run_search_bench
    from homing.evaluation.benches.search_results import results, terminal_table

    check_out_folder(context, out)
    bench = SearchBench(
        photos=photos,
        distractor_photos=distractor_photos,
        out=out,
        distractors=distractors,
        codebooks=codebook or ["homing-1"],
        recipe=recipe,
        limit=limit,
    )
    result = run_search_bench(bench, resumable_progress)
    write_and_print(results(result, command_line(context)), out, terminal_table(result), as_json=json)
