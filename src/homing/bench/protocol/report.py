"""Parts that the reports of all benches share: what was measured, and the results of the searches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from homing.bench.protocol.config import CodebookRun
from homing.bench.protocol.references import Neighbors, Probes

INTERVALS = "95 %: a bootstrap over photos (1,000 rounds, seed 0); of width 0 if all photos have the same result"
SEARCH_HEADINGS = ["codebook", "recipe", "probes", "photo", "edit", "rank", "found", "distance", "is_correct"]


def summary_line(run: CodebookRun) -> str:
    """The numbers of photos, references and distractors, in one sentence."""
    photos, distractors = len(run.originals), len(run.distractors.descriptors)
    among = f"{photos:,} photos among {photos + distractors:,} references, {distractors:,} of them "
    if run.distractors.codes is not None:
        return f"{among}distractors bundled with the codebook, compared by their codes in every search."
    return f"{among}distractors, from {run.distractors.photos:,} distinct photos."


def common_numbers(
    runs: Sequence[CodebookRun],
    *,
    rows: Sequence[Mapping[str, object]],
    settings: Mapping[str, object],
    seconds: float,
    failures: Sequence[str] = (),
) -> dict[str, object]:
    """The JSON document of a bench; `failures` are those that belong to no run."""
    first = runs[0]
    distractors = {
        "photos": first.distractors.photos,
        "descriptors": len(first.distractors.descriptors),
        "bundled": first.distractors.codes is not None,
    }
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
    """The number of probes as a table cell; a dash for an index without cells."""
    return str(probes) if has_cells or probes == "exact" else "–"


def describe_probes(probes: Probes, has_cells: bool) -> str:
    """The number of probes as words."""
    if probes == "exact":
        return "exact"
    if not has_cells:
        return "no cells"
    return "1 probe" if probes == 1 else f"{probes} probes"


def numbered_name(name: str, number: int) -> str:
    """The name of a figure; from the second of its kind on, with its number."""
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
    """A CSV row (SEARCH_HEADINGS) for each search for P files with E edits; ranks (P, E)."""
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
    """Name and distance of the nearest reference: no name for a distractor, both empty if nothing was found."""
    number = int(found.ids[query, 0])
    name = names[number] if 0 <= number < len(names) else ""
    return [name, "" if number < 0 else f"{found.distances[query, 0]:.5f}"]
