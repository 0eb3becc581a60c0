"""homing bench edits: how strong an edit may be before a copy is lost."""

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
    ProbesText,
    RecipeNames,
    StrangerCount,
    begin,
    command_line,
    listed,
    probes_in,
    stage,
    tell,
)


def edits(
    context: typer.Context,
    photos: Photos,
    background: Background,
    out: Out,
    strangers: StrangerCount = 300_000,
    codebook: CodebookNames = None,
    probes: ProbesText = "1",
    recipes: RecipeNames = "passive,paper",
    families: Annotated[
        str | None,
        typer.Option(
            help="What is done to the copies, with commas between: rotation, crop, resize, blur, jpeg, contrast, "
            "brightness, hue.",
            show_default="all",
        ),
    ] = None,
    limit: Limit = None,
    json: AsJson = False,
) -> None:
    """Measure how strong an edit may be: copies are turned, cropped, blurred more and more, and searched for.

    Interrupted, the same command continues; what was described and released stays in the out folder.

    Example:

        homing bench edits --photos held-out/ --background others/ --families rotation,crop --out edits/
    """
    from homing.edits.sweeps import SWEEPS
    from homing.evaluation.benches.edits import EditsBench, run_edits_bench
    from homing.evaluation.benches.edits_results import results, shown

    begin(context, out)
    bench = EditsBench(
        photos=photos,
        background=background,
        out=out,
        strangers=strangers,
        codebooks=codebook or ["homing-1"],
        probes=probes_in(probes),
        recipes=listed(recipes),
        families=tuple(SWEEPS) if families is None else listed(families),
        limit=limit,
    )
    result = run_edits_bench(bench, stage)
    tell(results(result, command_line(context)), out, shown(result), as_json=json)
