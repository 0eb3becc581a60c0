"""homing bench search: gain and cost of search options."""

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
    out: Out,
    distractor_photos: DistractorPhotos = None,
    distractors: DistractorCount = 300_000,
    codebook: CodebookNames = None,
    recipe: Annotated[
        str,
        typer.Option(
            help="The recipe for activation; list recipes with: homing recipes. Passive releases are measured as well."
        ),
    ] = "homing",
    limit: Limit = None,
    json: JsonFlag = False,
) -> None:
    """Measure the recall and the cost of each search option: probe radius, variants, re-ranking.

    Each copy is described in five variants. Run the same command again to resume it: descriptors and
    released files stay in the out folder.

    Example:

        homing bench search --photos held-out/ --out search/
    """
    from homing.bench.benches.search import SearchBench, run_search_bench
    from homing.bench.benches.search_results import results, terminal_table

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
