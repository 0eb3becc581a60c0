"""homing bench search: what the options of a search add, and cost."""

from __future__ import annotations

from typing import Annotated

import typer

from homing.cli._screen import AsJson
from homing.cli.bench._common import (
    Background,
    CodebookNames,
    Limit,
    Out,
    Photos,
    StrangerCount,
    begin,
    command_line,
    stage,
    tell,
)


def search(
    context: typer.Context,
    photos: Photos,
    background: Background,
    out: Out,
    strangers: StrangerCount = 300_000,
    codebook: CodebookNames = None,
    recipe: Annotated[
        str, typer.Option(help="How to activate: see homing recipes. Photos are released as they are, too.")
    ] = "homing",
    limit: Limit = None,
    json: AsJson = False,
) -> None:
    """Measure what each option of a search adds to the recall, and costs: margins, turned queries, ranking again.

    Every copy is described in five turns. Interrupted, the same command continues; what was described and released
    stays in the out folder.

    Example:

        homing bench search --photos held-out/ --background others/ --strangers 100000 --out search/
    """
    from homing.evaluation.benches.search import SearchBench, run_search_bench
    from homing.evaluation.benches.search_results import results, shown

    begin(context, out)
    bench = SearchBench(
        photos=photos,
        background=background,
        out=out,
        strangers=strangers,
        codebooks=codebook or ["homing-1"],
        recipe=recipe,
        limit=limit,
    )
    result = run_search_bench(bench, stage)
    tell(results(result, command_line(context)), out, shown(result), as_json=json)
