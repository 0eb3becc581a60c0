"""The retrieval bench's results as files: for machines, for people, and every single search."""

from __future__ import annotations

import csv
import io
import json
import platform
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import faiss
import PIL
import torch

from homing import __version__
from homing._files import write_atomically, writing
from homing._machine import hardware
from homing.edits import PAPER
from homing.evaluation.retrieval_bench import BenchResult
from homing.evaluation.tables import markdown
from homing.extractors.crops import SEED


def write_results(result: BenchResult) -> None:
    """Write results.json, queries.csv and table.md into the bench's out folder."""
    files = {
        "results.json": json.dumps(as_json(result), indent=2, allow_nan=False) + "\n",
        "queries.csv": _queries(result),
        "table.md": f"{setting(result)}\n\n{_table(result)}",
    }
    for name, text in files.items():
        path = result.bench.out / name
        with writing(path):
            write_atomically(path, text.encode())


def as_json(result: BenchResult) -> dict[str, object]:
    """All but the single searches, as one JSON document."""
    bench, first = result.bench, result.measured[0]
    return {
        "rows": [asdict(row) for row in result.rows],
        "settings": {
            "photos": first.photos,
            "background": {"photos": first.strangers.photos, "strangers": len(first.strangers.descriptors)},
            "edits": [edit.label for edit in PAPER],
            "seed": SEED,
            "recipes": list(bench.recipes),
            "probes": list(bench.probes),
        },
        "versions": {
            "homing": __version__,
            "torch": torch.__version__,
            "faiss": faiss.__version__,
            "pillow": PIL.__version__,
            "python": platform.python_version(),
        },
        "codebooks": {
            each.codebook.name: {
                "fingerprint": each.codebook.fingerprint,
                "extractor_fingerprint": each.codebook.extractor_fingerprint,
            }
            for each in result.measured
        },
        "hardware": hardware(),
        "seconds": round(result.seconds, 1),
        "failures": result.failures,
    }


def setting(result: BenchResult) -> str:
    """In one line: what was searched for, and among what."""
    first = result.measured[0]
    strangers = len(first.strangers.descriptors)
    return (
        f"Recall at rank 1 of edited copies: {first.photos:,} photos among {first.photos + strangers:,} references, "
        f"{strangers:,} of them strangers, from {first.strangers.photos:,} distinct photos."
    )


def _table(result: BenchResult) -> str:
    headings = ["network / codebook", "recipe", "probes", "mean", *(edit.label for edit in PAPER)]
    return markdown(
        headings,
        (
            [
                f"{Path(row.extractor).name} / {row.codebook} ({row.spec})",
                row.recipe,
                str(row.probes),
                f"{row.mean:.3f}",
                *(f"{recall:.2f}" for recall in row.recall.values()),
            ]
            for row in result.rows
        ),
    )


def _queries(result: BenchResult) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["codebook", "recipe", "probes", "photo", "edit", "found", "distance", "home"])
    writer.writerows(_searches(result))
    return text.getvalue()


def _searches(result: BenchResult) -> Iterator[list[object]]:
    """A line for each search; nothing stands under found where a stranger was nearest, or nothing was found at all."""
    for row, queries in (pair for each in result.measured for pair in each.rows):
        for query in queries:
            match = query.matches[0] if query.matches else None
            found, distance = (match.photo, f"{match.distance:.5f}") if match else ("", "")
            yield [
                row.codebook,
                row.recipe,
                row.probes,
                query.source,
                query.edit,
                found,
                distance,
                int(query.came_home),
            ]
