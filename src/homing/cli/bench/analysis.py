"""homing bench analysis: why edited copies come home."""

from __future__ import annotations

import typer

from homing.cli._screen import AsJson
from homing.cli.bench._common import (
    Background,
    CodebookNames,
    Limit,
    Out,
    Photos,
    RecipeNames,
    StrangerCount,
    begin,
    command_line,
    listed,
    stage,
    tell,
)


def analysis(
    context: typer.Context,
    photos: Photos,
    background: Background,
    out: Out,
    strangers: StrangerCount = 300_000,
    codebook: CodebookNames = None,
    recipes: RecipeNames = "passive,paper",
    limit: Limit = None,
    json: AsJson = False,
) -> None:
    """Measure why edited copies come home: how far from their codes they lie, and how many leave their cells.

    Also checks that photos activated in a collection do not change the answers for the others. Interrupted, the same
    command continues.

    Example:

        homing bench analysis --photos held-out/ --background others/ --strangers 100000 --out analysis/
    """
    from homing.evaluation.benches.analysis import AnalysisBench, run_analysis_bench
    from homing.evaluation.benches.analysis_results import results, shown

    begin(context, out)
    bench = AnalysisBench(
        photos=photos,
        background=background,
        out=out,
        strangers=strangers,
        codebooks=codebook or ["homing-1"],
        recipes=listed(recipes),
        limit=limit,
    )
    result = run_analysis_bench(bench, stage)
    tell(results(result, command_line(context)), out, shown(result), as_json=json)
