"""homing bench detection: how well copies are separated from other photos."""

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
    ProbesText,
    RecipeNames,
    TrainPhotos,
    check_out_folder,
    codebooks,
    command_line,
    parse_probes,
    resumable_progress,
    split_list,
    write_and_print,
)
from homing.errors import HomingError


def detection(
    context: typer.Context,
    photos: Photos,
    negatives: Annotated[Path, typer.Option(help="Photos that are not references: their copies should not match.")],
    out: Out,
    distractor_photos: DistractorPhotos = None,
    distractors: DistractorCount = 300_000,
    codebook: CodebookNames = None,
    index: IndexSpecs = None,
    train_photos: TrainPhotos = None,
    extractor: NetworkName = "homing-1",
    descriptors: DescriptorCount = None,
    probes: ProbesText = "1,16,exact",
    recipes: RecipeNames = "passive,paper",
    edits: Annotated[
        str, typer.Option(help="Comma-separated edits of the copies; all: the fourteen of the paper.")
    ] = "random",
    max_false_match: Annotated[
        str, typer.Option(help="Comma-separated shares of negatives that may match.")
    ] = "0.01,0.001",
    limit: Limit = None,
    json: JsonFlag = False,
) -> None:
    """Measure how well copies are separated from other photos, which are edited and searched for as well.

    Run the same command again to resume it: descriptors and released files stay in the out folder.

    Example:

        homing bench detection --photos held-out/ --negatives more/ --out detection/
    """
    from homing.bench.benches.detection import DetectionBench, run_detection_bench
    from homing.bench.benches.detection_results import results, terminal_table
    from homing.edits import PAPER, parse

    check_out_folder(context, out)
    bench = DetectionBench(
        photos=photos,
        negatives=negatives,
        distractor_photos=distractor_photos,
        out=out,
        distractors=distractors,
        codebooks=codebooks(codebook, index),
        index=index or [],
        train_photos=train_photos,
        extractor=extractor,
        descriptors=descriptors,
        probes=parse_probes(probes),
        recipes=split_list(recipes),
        edits=PAPER if edits.strip() == "all" else [parse(label) for label in split_list(edits)],
        max_false_match=[_rate(text) for text in split_list(max_false_match)],
        limit=limit,
    )
    result = run_detection_bench(bench, resumable_progress)
    write_and_print(results(result, command_line(context)), out, terminal_table(result), as_json=json)


def _rate(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise HomingError(f"--max-false-match takes comma-separated numbers from 0 to 1, got '{text}'") from None
