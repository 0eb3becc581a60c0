"""homing bench watermarks: activation compared with watermarks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homing.cli._console import JsonFlag
from homing.cli.bench._common import (
    CodebookNames,
    DescriptorCount,
    DistractorCount,
    DistractorPhotos,
    IndexSpecs,
    Limit,
    NetworkName,
    Out,
    Photos,
    TrainPhotos,
    check_out_folder,
    codebooks,
    command_line,
    resumable_progress,
    split_list,
    write_and_print,
)


def watermarks(
    context: typer.Context,
    photos: Photos,
    out: Out,
    distractor_photos: DistractorPhotos = None,
    distractors: DistractorCount = 300_000,
    codebook: CodebookNames = None,
    index: IndexSpecs = None,
    train_photos: TrainPhotos = None,
    extractor: NetworkName = "homing-1",
    descriptors: DescriptorCount = None,
    watermarks: Annotated[str, typer.Option(help="Comma-separated watermarks.")] = "ssl,hidden",
    hidden: Annotated[
        Path | None, typer.Option(help="A file that homing train hidden wrote.", show_default="the bundled one")
    ] = None,
    ssl_extractor: Annotated[
        str, typer.Option(help="The network of SSL watermarks; list networks with: homing extractors.")
    ] = "imagenet-lite0",
    key: Annotated[int, typer.Option(help="The key of SSL watermarks: the seed of their directions.")] = 0,
    limit: Limit = None,
    json: JsonFlag = False,
) -> None:
    """Compare activation with watermarks at the same PSNR: copies that are found, and identifiers that are read.

    Run the same command again to resume it: descriptors and released files stay in the out folder.

    Example:

        homing bench watermarks --photos held-out/ --out watermarks/
    """
    from homing.bench.benches.watermarks import WatermarksBench, run_watermarks_bench
    from homing.bench.benches.watermarks_results import results, terminal_table

    check_out_folder(context, out)
    bench = WatermarksBench(
        photos=photos,
        distractor_photos=distractor_photos,
        out=out,
        distractors=distractors,
        codebooks=codebooks(codebook, index),
        index=index or [],
        train_photos=train_photos,
        extractor=extractor,
        descriptors=descriptors,
        watermarks=split_list(watermarks),
        hidden=hidden,
        ssl_extractor=ssl_extractor,
        key=key,
        limit=limit,
    )
    result = run_watermarks_bench(bench, resumable_progress)
    write_and_print(results(result, command_line(context)), out, terminal_table(result), as_json=json)
