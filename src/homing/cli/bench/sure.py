"""homing bench sure: whether chances of false matches are what they are said to be."""

from __future__ import annotations

from typing import Annotated

import typer

from homing.cli._screen import AsJson
from homing.cli.bench._common import Background, CodebookNames, Out, begin, command_line, stage, tell


def sure(
    context: typer.Context,
    background: Background,
    out: Out,
    strangers: Annotated[int, typer.Option(help="How many of them, whole: each half is searched for in the other.")] = (
        20_000
    ),
    codebook: CodebookNames = None,
    leave_out_related: Annotated[
        bool,
        typer.Option(
            "--leave-out-related", help="Lay the 300 nearest pairs over each other; those that show one scene are none."
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Measure how often unrelated photos come as near as the chance that a match carries says they do.

    The photos must be related neither to each other nor to those the codebook knows its distances from. Those that are
    related to each other all the same can be left out (it needs the extra `demo`).

    Example:

        homing bench sure --background others/ --strangers 20000 --out sure/
    """
    from homing.evaluation.benches.sure import SureBench, run_sure_bench
    from homing.evaluation.benches.sure_results import results, shown

    begin(context, out)
    bench = SureBench(
        background=background,
        out=out,
        strangers=strangers,
        codebooks=codebook or ["homing-1"],
        leave_out_related=leave_out_related,
    )
    result = run_sure_bench(bench, stage)
    tell(results(result, command_line(context)), out, shown(result), as_json=json)
