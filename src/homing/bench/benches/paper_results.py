"""The report of the paper bench: every figure next to the published one, with links to the parts."""

from __future__ import annotations

from dataclasses import replace
from html import escape

from homing.bench.benches.paper import PaperResult
from homing.bench.results import Results, Table

_HEADINGS = ["part", "metric", "recipe", "probes", "ours", "published"]


class _Link(str):
    """Text that is a link in HTML and plain text elsewhere."""

    address: str

    def __new__(cls, text: str, address: str) -> _Link:
        link = super().__new__(cls, text)
        link.address = address
        return link

    def __html__(self) -> str:
        return f'<a href="{escape(self.address)}">{escape(str(self))}</a>'


def results(result: PaperResult, command: str) -> Results:
    """The report, without the reports of the parts."""
    bench = result.bench
    return Results(
        title="Active Image Indexing on DISC21",
        summary=f"{result.photos:,} photos among {result.references:,} references of DISC21; {bench.spec} of "
        f"{bench.extractor}, trained on {result.train_photos.photos:,} photos of train/; {result.negatives:,} "
        "negatives.",
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
                "negatives": f"{result.negatives}, the last of train/, on which the codebook was not trained; the "
                "paper uses originals of DISC21's distractor queries, which are not part of the download",
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
    """The table for a terminal."""
    return [_HEADINGS, *_rows(result)]


def _table(result: PaperResult) -> Table:
    starts = [sum(len(part.comparisons) for part in result.parts[:i]) for i in range(len(result.parts))]
    return Table(
        name="summary",
        caption="Measured figures and, where the paper reports one, the published figure (Fernandez et al., 2023: "
        "SSCD, 10,000 photos among a million references).",
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
