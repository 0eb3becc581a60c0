"""homing bench retrieval: how many edited copies are found."""

from __future__ import annotations

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


def retrieval(
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
    probes: ProbesText = "1,16,exact",
    recipes: RecipeNames = "passive,paper",
    limit: Limit = None,
    json: JsonFlag = False,
) -> None:
    """Measure how many edited copies are found: photos are released, edited and searched for.

    Run the same command again to resume it: descriptors and released files stay in the out folder.

    Examples:

        homing bench retrieval --photos held-out/ --out retrieval/

        homing bench retrieval --photos held-out/ --distractor-photos others/ --distractors 100000 --out retrieval/
    """
    from homing.bench.benches.retrieval import RetrievalBench, run_retrieval_bench
    from homing.bench.benches.retrieval_results import results, terminal_table

    check_out_folder(context, out)
    bench = RetrievalBench(
        photos=photos,
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
        limit=limit,
    )
    result = run_retrieval_bench(bench, resumable_progress)
    write_and_print(results(result, command_line(context)), out, terminal_table(result), as_json=json)
