"""homing bench watermarks: activation beside watermarks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homing.cli._screen import AsJson
from homing.cli.bench._common import (
    Background,
    CodebookNames,
    DescriptorCount,
    IndexSpecs,
    Limit,
    NetworkName,
    Out,
    Photos,
    StrangerCount,
    Taught,
    begin,
    codebooks,
    command_line,
    listed,
    stage,
    tell,
)


def watermarks(
    context: typer.Context,
    photos: Photos,
    background: Background,
    out: Out,
    strangers: StrangerCount = 300_000,
    codebook: CodebookNames = None,
    index: IndexSpecs = None,
    taught: Taught = None,
    extractor: NetworkName = "homing-1",
    descriptors: DescriptorCount = None,
    watermarks: Annotated[str, typer.Option(help="Which watermarks, with commas between.")] = "ssl,hidden",
    hidden: Annotated[
        Path | None, typer.Option(help="A file that homing train hidden wrote.", show_default="inside the package")
    ] = None,
    ssl_extractor: Annotated[
        str, typer.Option(help="The network of SSL watermarks: see homing extractors.")
    ] = "imagenet-lite0",
    key: Annotated[int, typer.Option(help="What SSL watermarks are read with; another key, other directions.")] = 0,
    limit: Limit = None,
    json: AsJson = False,
) -> None:
    """Compare activation with watermarks: at the same PSNR, which copies are found, and whose identifier is read.

    Interrupted, the same command continues; what was described and released stays in the out folder.

    Example:

        homing bench watermarks --photos held-out/ --background others/ --strangers 100000 --out watermarks/
    """
    from homing.evaluation.benches.watermarks import WatermarksBench, run_watermarks_bench
    from homing.evaluation.benches.watermarks_results import results, shown

    begin(context, out)
    bench = WatermarksBench(
        photos=photos,
        background=background,
        out=out,
        strangers=strangers,
        codebooks=codebooks(codebook, index),
        index=index or [],
        taught=taught,
        extractor=extractor,
        descriptors=descriptors,
        watermarks=listed(watermarks),
        hidden=hidden,
        ssl_extractor=ssl_extractor,
        key=key,
        limit=limit,
    )
    result = run_watermarks_bench(bench, stage)
    tell(results(result, command_line(context)), out, shown(result), as_json=json)
