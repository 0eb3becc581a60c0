"""What every bench says: what it measured on, and what its searches found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from homing.evaluation.protocol.config import CodebookRun
from homing.evaluation.protocol.references import Neighbors, Probes

INTERVALS = "95 %: a bootstrap over photos (1,000 rounds, seed 0); it has no width where all fare alike"
SEARCH_HEADINGS = ["codebook", "recipe", "probes", "photo", "edit", "rank", "found", "distance", "is_correct"]


def summary_line(run: CodebookRun) -> str:
    """In one sentence: how many photos, among what."""
    photos, distractors = len(run.originals), len(run.distractors.descriptors)
    return (
        f"{photos:,} photos among {photos + distractors:,} references, {distractors:,} of them distractors, "
        f"from {run.distractors.photos:,} distinct photos."
    )


def common_numbers(
    runs: Sequence[CodebookRun],
    *,
    rows: Sequence[Mapping[str, object]],
    settings: Mapping[str, object],
    seconds: float,
    failures: Sequence[str] = (),
) -> dict[str, object]:
    """The document of a bench of these subjects; `failures` are those that are no subject's own."""
    first = runs[0]
    distractors = {"photos": first.distractors.photos, "descriptors": len(first.distractors.descriptors)}
    lines = [*(line for run in runs for line in run.failures), *failures]
    return {
        "rows": rows,
        "settings": {"photos": len(first.originals), "distractors": distractors, **settings},
        "codebooks": {
            run.codebook.name: {
                "fingerprint": run.codebook.fingerprint,
                "extractor_fingerprint": run.codebook.extractor_fingerprint,
            }
            for run in runs
        },
        "seconds": round(seconds, 1),
        "failures": list(dict.fromkeys(lines)),
    }


def format_probes(probes: Probes, has_cells: bool) -> str:
    """The number of probes in a table; an index without cells has none."""
    return str(probes) if has_cells or probes == "exact" else "–"


def describe_probes(probes: Probes, has_cells: bool) -> str:
    """The number of probes in words."""
    if probes == "exact":
        return "exact"
    if not has_cells:
        return "no cells"
    return "1 probe" if probes == 1 else f"{probes} probes"


def numbered_name(name: str, number: int) -> str:
    """The name of the first, second, … figure of its kind."""
    return name if number == 1 else f"{name}-{number}"


def search_rows(
    run: CodebookRun,
    recipe: str,
    probes: Probes | str,
    sources: Sequence[str],
    labels: Sequence[str],
    found: Neighbors,
    ranks: np.ndarray,
) -> Iterator[list[object]]:
    """Under the headings above, a line for each search for P files edited in E ways; ranks (P, E)."""
    names = [original.source for original in run.originals]
    queries = [(source, label) for source in sources for label in labels]
    for query, (pair, rank) in enumerate(zip(queries, ranks.ravel().tolist(), strict=True)):
        rank_cell = "" if rank < 0 else rank + 1
        yield [
            run.codebook.name,
            recipe,
            probes,
            *pair,
            rank_cell,
            *nearest_name_and_distance(found, query, names),
            int(rank == 0),
        ]


def nearest_name_and_distance(found: Neighbors, query: int, names: Sequence[str]) -> list[str]:
    """What is nearest, and how far; no name where it is a distractor, neither where nothing was found at all."""
    number = int(found.ids[query, 0])
    name = names[number] if 0 <= number < len(names) else ""
    return [name, "" if number < 0 else f"{found.distances[query, 0]:.5f}"]
