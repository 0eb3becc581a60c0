"""homing bench edits: recall by strength of an edit."""

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
    ProbesText,
    RecipeNames,
    check_out_folder,
    command_line,
    parse_probes,
    resumable_progress,
    split_list,
    write_and_print,
)


def edits(
    context: typer.Context,
    photos: Photos,
    out: Out,
    distractor_photos: DistractorPhotos = None,
    distractors: DistractorCount = 300_000,
    codebook: CodebookNames = None,
    probes: ProbesText = "1",
    recipes: RecipeNames = "passive,paper",
    families: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated edits of the copies: rotation, crop, resize, blur, jpeg, contrast, brightness, hue.",
            show_default="all",
        ),
    ] = None,
    limit: Limit = None,
    json: JsonFlag = False,
) -> None:
    """Measure recall by strength of an edit: copies are rotated, cropped, blurred more and more, and searched for.

    Run the same command again to resume it: descriptors and released files stay in the out folder.

    Example:

        homing bench edits --photos held-out/ --families rotation,crop --out edits/
    """
    from homing.bench.benches.edits import EditsBench, run_edits_bench
    from homing.bench.benches.edits_results import results, terminal_table
    from homing.edits import SWEEPS

    check_out_folder(context, out)
    bench = EditsBench(
        photos=photos,
        distractor_photos=distractor_photos,
        out=out,
        distractors=distractors,
        codebooks=codebook or ["homing-1"],
        probes=parse_probes(probes),
        recipes=split_list(recipes),
        families=tuple(SWEEPS) if families is None else split_list(families),
        limit=limit,
    )
    result = run_edits_bench(bench, resumable_progress)
    write_and_print(results(result, command_line(context)), out, terminal_table(result), as_json=json)
