"""homing bench detection: how well copies are told from other photos."""

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
    ProbesText,
    RecipeNames,
    StrangerCount,
    Taught,
    begin,
    codebooks,
    command_line,
    listed,
    probes_in,
    stage,
    tell,
)
from homing.errors import HomingError


def detection(
    context: typer.Context,
    photos: Photos,
    negatives: Annotated[Path, typer.Option(help="Photos that are no references: no copy of them should be found.")],
    background: Background,
    out: Out,
    strangers: StrangerCount = 300_000,
    codebook: CodebookNames = None,
    index: IndexSpecs = None,
    taught: Taught = None,
    extractor: NetworkName = "homing-1",
    descriptors: DescriptorCount = None,
    probes: ProbesText = "1,16,exact",
    recipes: RecipeNames = "passive,paper",
    edits: Annotated[
        str, typer.Option(help="What others do to the copies, with commas between; all: the fourteen of the paper.")
    ] = "random",
    false_matches: Annotated[
        str, typer.Option(help="The shares of negatives that may be taken for copies, with commas between.")
    ] = "0.01,0.001",
    limit: Limit = None,
    json: AsJson = False,
) -> None:
    """Measure how well copies are told from other photos, which are edited and searched for as well.

    Interrupted, the same command continues; what was described and released stays in the out folder.

    Example:

        homing bench detection --photos held-out/ --negatives more/ --background others/ --out detection/
    """
    from homing.edits import PAPER, parse
    from homing.evaluation.benches.detection import DetectionBench, run_detection_bench
    from homing.evaluation.benches.detection_results import results, shown

    begin(context, out)
    bench = DetectionBench(
        photos=photos,
        negatives=negatives,
        background=background,
        out=out,
        strangers=strangers,
        codebooks=codebooks(codebook, index),
        index=index or [],
        taught=taught,
        extractor=extractor,
        descriptors=descriptors,
        probes=probes_in(probes),
        recipes=listed(recipes),
        edits=PAPER if edits.strip() == "all" else [parse(label) for label in listed(edits)],
        false_matches=[_rate(text) for text in listed(false_matches)],
        limit=limit,
    )
    result = run_detection_bench(bench, stage)
    tell(results(result, command_line(context)), out, shown(result), as_json=json)


def _rate(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise HomingError(f"rates of false matches are numbers from 0 to 1, got '{text}'") from None
