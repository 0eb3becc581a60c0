"""homing bench paper: the measurements of the paper, on its dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homing.cli._console import JsonFlag
from homing.cli.bench._common import (
    Out,
    ProbesText,
    RecipeNames,
    check_out_folder,
    command_line,
    parse_probes,
    resumable_progress,
    split_list,
    write_and_print,
)


def paper(
    context: typer.Context,
    disc21: Annotated[
        Path,
        typer.Argument(
            metavar="DISC21_DIR", readable=False, help="The folder of DISC21: references/, train/, ground truth."
        ),
    ],
    out: Out,
    extractor: Annotated[
        str, typer.Option(help="The network; the paper's is sscd_disc_mixup. List networks with: homing extractors.")
    ] = "homing-1",
    spec: Annotated[
        str, typer.Option(help="The index as a FAISS factory string; it is trained on train/.")
    ] = "IVF4096,PQ8x8",
    descriptors: Annotated[
        int | None,
        typer.Option(
            help="How many descriptors to train on: whole photos of train/, then crops.", show_default="one per photo"
        ),
    ] = None,
    limit_train: Annotated[
        int | None, typer.Option(help="Train on only the first photos of train/.", show_default="all but negatives")
    ] = None,
    limit_references: Annotated[
        int | None,
        typer.Option(help="Index only this many of the references that are not searched for.", show_default="all"),
    ] = None,
    positives: Annotated[int, typer.Option(help="How many references of the ground truth to search for.")] = 10_000,
    negatives: Annotated[int, typer.Option(help="How many photos at the end of train/ are negative queries.")] = 40_000,
    probes: ProbesText = "1,16,exact",
    recipes: RecipeNames = "passive,paper",
    parts: Annotated[
        str, typer.Option(help="Comma-separated benches to run.")
    ] = "retrieval,detection,quality,edits,analysis",
    json: JsonFlag = False,
) -> None:
    """Repeat the measurements of the paper on DISC21, beside the published figures.

    Each part is a bench with its own report in a folder of its name. Run the same command again to resume it.

    Example:

        homing bench paper DISC21/ --extractor sscd_disc_mixup --out paper/
    """
    from homing.bench.benches.paper import PaperBench, run_paper_bench
    from homing.bench.benches.paper_results import results, terminal_table

    check_out_folder(context, out)
    bench = PaperBench(
        disc21=disc21,
        out=out,
        extractor=extractor,
        spec=spec,
        descriptors=descriptors,
        limit_train=limit_train,
        limit_references=limit_references,
        positives=positives,
        negatives=negatives,
        probes=parse_probes(probes),
        recipes=split_list(recipes),
        parts=split_list(parts),
    )
    command = command_line(context)
    result = run_paper_bench(bench, command, resumable_progress)
    write_and_print(results(result, command), out, terminal_table(result), as_json=json)
