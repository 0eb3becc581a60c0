"""homing bench retrieval: how many edited copies come home."""

from __future__ import annotations

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


def retrieval(
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
    probes: ProbesText = "1,16,exact",
    recipes: RecipeNames = "passive,paper",
    limit: Limit = None,
    json: AsJson = False,
) -> None:
    """Measure how many edited copies come home: photos are released, edited as others would, and searched for.

    Interrupted, the same command continues; what was described and released stays in the out folder.

    Example:

        homing bench retrieval --photos held-out/ --background others/ --strangers 100000 --out retrieval/
    """
    from homing.evaluation.benches.retrieval import RetrievalBench, run_retrieval_bench
    from homing.evaluation.benches.retrieval_results import results, shown

    begin(context, out)
    bench = RetrievalBench(
        photos=photos,
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
        limit=limit,
    )
    result = run_retrieval_bench(bench, stage)
    tell(results(result, command_line(context)), out, shown(result), as_json=json)
