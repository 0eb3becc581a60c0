"""What the paper bench found, told on one page: every figure beside the paper's, and the way to each part."""

from __future__ import annotations

from dataclasses import replace
from html import escape

from homing.evaluation.benches.paper import PaperResult
from homing.evaluation.results import Results, Table

_HEADINGS = ["part", "metric", "recipe", "probes", "ours", "the paper's"]


class _Link(str):
    """Text that is a link where HTML is written, and plain text elsewhere."""

    address: str

    def __new__(cls, text: str, address: str) -> _Link:
        made = super().__new__(cls, text)
        made.address = address
        return made

    def __html__(self) -> str:
        return f'<a href="{escape(self.address)}">{escape(str(self))}</a>'


def results(result: PaperResult, command: str) -> Results:
    """All there is to say; the parts have said theirs."""
    bench = result.bench
    return Results(
        title="Active Image Indexing on DISC21",
        summary=f"{result.photos:,} photos among {result.references:,} references of DISC21; {bench.spec} of "
        f"{bench.extractor}, learned from {result.train_photos.photos:,} photos of train/; {result.negatives:,} negatives.",
        command=command,
        numbers={
            "rows": [
                {"part": part.name, **comparison._asdict()} for part in result.parts for comparison in part.comparisons
            ],
            "parts": {part.name: part.page for part in result.parts},
            "settings": {
                "disc21": str(bench.disc21),
                "extractor": bench.extractor,
                "spec": bench.spec,
                "photos": result.photos,
                "references": result.references,
                "train_photos": result.train_photos.photos,
                "descriptors": len(result.train_photos.descriptors),
                "negatives": f"{result.negatives}, the last of train/, which the codebook did not learn from; the "
                "paper's are originals of DISC21's distractors, which the download does not hold",
                "recipes": list(bench.recipes),
                "probes": list(bench.probes),
            },
            "seconds": round(result.seconds, 1),
            "failures": result.failures,
        },
        tables=[_table(result)],
        figures=[replace(part.figure, name=f"{part.name}-{part.figure.name}") for part in result.parts],
    )


def terminal_table(result: PaperResult) -> list[list[str]]:
    """The same table for a terminal."""
    return [_HEADINGS, *_rows(result)]


def _table(result: PaperResult) -> Table:
    starts = [sum(len(part.comparisons) for part in result.parts[:i]) for i in range(len(result.parts))]
    return Table(
        name="summary",
        caption="What was measured, beside what the paper prints for the same (Fernandez et al., 2023: SSCD, 10,000 "
        "photos among a million references). Nothing stands there where it prints no number.",
        headings=_HEADINGS,
        rows=_rows(result),
        groups=starts,
    )


def _rows(result: PaperResult) -> list[list[str]]:
    return [
        [
            _Link(part.name, part.page),
            comparison.metric,
            comparison.recipe,
            str(comparison.probes or ""),
            comparison.ours,
            comparison.published,
        ]
        for part in result.parts
        for comparison in part.comparisons
    ]
