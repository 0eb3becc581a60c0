"""homing bench quality: image quality and recall by strength."""

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
    out: Out,
    distractor_photos: DistractorPhotos = None,
    distractors: DistractorCount = 300_000,
    codebook: CodebookNames = None,
    recipes: Annotated[str, typer.Option(help="Comma-separated recipes; list recipes with: homing recipes.")] = "paper",
    psnrs: Annotated[
        str | None,
        typer.Option(help="Comma-separated strengths, in dB.", show_default="50,46,43.8,40,36,32"),
    ] = None,
    alphas: Annotated[
        str | None,
        typer.Option(help="Comma-separated strengths as in the paper, instead of PSNRs.", show_default=False),
    ] = None,
    budgets: Annotated[str, typer.Option(help="Comma-separated budgets to compare.")] = "jnd,jnd-printed,linf",
    budgets_at: Annotated[float, typer.Option(help="The PSNR at which budgets are compared, in dB.")] = 36.0,
    probes: Annotated[int, typer.Option(help="How many cells to scan.")] = 1,
    pictures: Annotated[int, typer.Option(help="How many photos to show in the report.")] = 4,
    lpips: Annotated[
        bool, typer.Option("--lpips", help="Measure LPIPS as well. It needs homing[lpips] and the weights of AlexNet.")
    ] = False,
    limit: Limit = None,
    json: JsonFlag = False,
) -> None:
    """Measure PSNR, SSIM and L∞ of the written files, and the recall, for several strengths.

    Budgets are compared at one PSNR, as in the paper.

    Run the same command again to resume it: descriptors and released files stay in the out folder.

    Example:

        homing bench quality --photos held-out/ --psnrs 46,40,34 --out quality/
    """
    from homing.bench.benches.quality import QualityBench, run_quality_bench
    from homing.bench.benches.quality_results import results, terminal_table

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
        raise HomingError(f"--{name} takes comma-separated numbers, got '{text}'") from None
