"""homing bench quality: what activation costs the eye, and what it brings."""

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
    split_list,
    write_and_print,
)
from homing.errors import HomingError


def quality(
    context: typer.Context,
    photos: Photos,
    distractor_photos: DistractorPhotos,
    out: Out,
    distractors: DistractorCount = 300_000,
    codebook: CodebookNames = None,
    recipes: Annotated[str, typer.Option(help="Ways to activate, with commas between; see homing recipes.")] = "paper",
    psnrs: Annotated[
        str | None,
        typer.Option(help="Strengths to try, in dB, with commas between.", show_default="50,46,43.8,40,36,32"),
    ] = None,
    alphas: Annotated[
        str | None, typer.Option(help="Strengths to try, as the paper states them, instead of PSNRs.", show_default="")
    ] = None,
    budgets: Annotated[
        str, typer.Option(help="Kinds of budgets to set side by side, with commas between.")
    ] = "jnd,jnd-printed,linf",
    budgets_at: Annotated[float, typer.Option(help="The PSNR at which they are compared, in dB.")] = 36.0,
    probes: Annotated[int, typer.Option(help="How many cells to look into.")] = 1,
    pictures: Annotated[int, typer.Option(help="How many photos to show in the report.")] = 4,
    lpips: Annotated[
        bool, typer.Option("--lpips", help="Measure LPIPS as well; needs homing[lpips] and the weights of AlexNet.")
    ] = False,
    limit: Limit = None,
    json: JsonFlag = False,
) -> None:
    """Measure what activation costs the eye: PSNR, SSIM and L∞ of the files as written, and what each strength brings.

    Kinds of budgets stand side by side, at the PSNR of the paper's picture of them.

    Interrupted, the same command continues; what was described and released stays in the out folder.

    Example:

        homing bench quality --photos held-out/ --distractor-photos others/ --psnrs 46,40,34 --out quality/
    """
    from homing.evaluation.benches.quality import QualityBench, run_quality_bench
    from homing.evaluation.benches.quality_results import results, terminal_table

    check_out_folder(context, out)
    bench = QualityBench(
        photos=photos,
        distractor_photos=distractor_photos,
        out=out,
        distractors=distractors,
        codebooks=codebook or ["homing-1"],
        recipes=split_list(recipes),
        psnrs=_numbers("psnrs", psnrs),
        alphas=_numbers("alphas", alphas),
        budgets=split_list(budgets),
        budgets_at=budgets_at,
        probes=probes,
        pictures=pictures,
        lpips=lpips,
        limit=limit,
    )
    result = run_quality_bench(bench, resumable_progress)
    write_and_print(results(result, command_line(context)), out, terminal_table(result), as_json=json)


def _numbers(name: str, text: str | None) -> list[float] | None:
    try:
        return None if text is None else [float(each) for each in split_list(text)]
    except ValueError:
        raise HomingError(f"{name} are numbers with commas between, got '{text}'") from None
