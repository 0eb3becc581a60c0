"""The report of the search bench: recall and cost of each option, a figure, and a CSV row for each search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from homing.bench.benches.search import LABELS, RERANK, SEARCH_OPTIONS, SearchBenchResult, SearchRow
from homing.bench.protocol.config import CodebookRun
from homing.bench.protocol.report import (
    INTERVALS,
    SEARCH_HEADINGS,
    common_numbers,
    numbered_name,
    search_rows,
    summary_line,
)
from homing.bench.results import CsvTable, Figure, Results, Table, colors
from homing.collection.search import VARIANTS

if TYPE_CHECKING:
    import matplotlib.figure

_MARKERS = "o<^>vdsDPX*"  # one for each option
_COSTS = ["codes", "descriptors", "ms", "passes"]


def results(result: SearchBenchResult, command: str) -> Results:
    """The report."""
    return Results(
        title="Recall and cost of search options",
        summary=f"Recall at rank 1 of edited copies: {summary_line(result.runs[0])}",
        command=command,
        numbers=common_numbers(
            result.runs,
            rows=[asdict(row) for row in result.rows],
            settings={
                "edits": LABELS,
                "recipe": result.bench.recipe,
                "searches": [option.name for option in SEARCH_OPTIONS],
                "intervals": INTERVALS,
            },
            seconds=result.seconds,
        ),
        tables=[_table(result), _edits(result)],
        figures=[_figure(result, run, number) for number, run in enumerate(result.runs, 1)],
        csv_table=CsvTable(
            headings=["search" if each == "probes" else each for each in SEARCH_HEADINGS], rows=_searches(result)
        ),
    )


def terminal_table(result: SearchBenchResult) -> list[list[str]]:
    """The table for a terminal."""
    headings = ["codebook", "recipe", "search", "recall", "gain", *_COSTS]
    return [
        headings,
        *([row.codebook, row.recipe, row.search, f"{row.mean:.3f}", _gain(row), *_costs(row)] for row in result.rows),
    ]


def _table(result: SearchBenchResult) -> Table:
    rows = [
        [
            row.codebook,
            row.recipe,
            row.search,
            f"{row.mean:.3f} ({row.mean_interval.low:.3f}–{row.mean_interval.high:.3f})",
            f"{_gain(row)} ({row.gain_interval.low:+.3f} to {row.gain_interval.high:+.3f})" if _gain(row) else "",
            *_costs(row),
        ]
        for row in result.rows
    ]
    return Table(
        name="table",
        caption="Recall at rank 1, mean of the fourteen edits, with its 95 % interval, and its gain over one probe. "
        "Then the cost of a query: codes and full descriptors compared, its time on one core, passes of the network. "
        "Probe radius: all cells whose centers are at most this much farther than the nearest, in squared distance. "
        f"Variants: the query as it is, in quarter turns, and mirrored, {VARIANTS} in all. Re-ranked: the {RERANK} "
        "nearest, by full descriptors.",
        headings=["codebook", "recipe", "search", "mean, 95 % interval", "gain", *_COSTS],
        rows=rows,
        groups=range(len(SEARCH_OPTIONS), len(rows), len(SEARCH_OPTIONS)),
    )


def _edits(result: SearchBenchResult) -> Table:
    rows = [
        [row.codebook, row.recipe, row.search, *(f"{recall:.2f}" for recall in row.recall.values())]
        for row in result.rows
    ]
    return Table(
        name="edits",
        caption="Recall at rank 1 by edit.",
        headings=["codebook", "recipe", "search", *LABELS],
        rows=rows,
        groups=range(len(SEARCH_OPTIONS), len(rows), len(SEARCH_OPTIONS)),
    )


def _gain(row: SearchRow) -> str:
    return "" if row.search == SEARCH_OPTIONS[0].name else f"{row.gain:+.3f}"


def _costs(row: SearchRow) -> list[str]:
    milliseconds = "" if row.milliseconds is None else f"{row.milliseconds:.2f}"
    return [f"{row.codes:,.0f}", f"{row.descriptors:,.0f}", milliseconds, str(row.passes)]


def _figure(result: SearchBenchResult, run: CodebookRun, number: int) -> Figure:
    """Recall against cost: a color for each recipe, a marker for each option."""
    rows = [row for row in result.rows if row.codebook == run.codebook.name]
    color = colors(list(dict.fromkeys(row.recipe for row in rows)))
    markers = dict(zip((option.name for option in SEARCH_OPTIONS), _MARKERS, strict=True))

    def draw(canvas: matplotlib.figure.Figure) -> None:
        axes = canvas.subplots()
        for row in rows:
            low, high = row.mean_interval
            axes.errorbar(
                [row.codes + row.descriptors],
                [row.mean],
                yerr=[[row.mean - low], [high - row.mean]],
                fmt=markers[row.search],
                color=color[row.recipe],
                markersize=6,
                elinewidth=0.7,
            )
        for recipe in color:
            axes.plot([], [], "s", color=color[recipe], label=recipe)
        for name, marker in markers.items():
            axes.plot([], [], marker, color="none", markeredgecolor="black", label=name)
        axes.set_xscale("log")
        axes.set_xlabel("codes and descriptors compared per query")
        axes.set_ylabel("recall at rank 1")
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))

    return Figure(
        name=numbered_name("search", number),
        caption="Recall, mean of the fourteen edits with 95 % intervals, against the number of comparisons per query, "
        f"{run.codebook.name}.",
        draw=draw,
        size=(8.0, 4.4),
    )


def _searches(result: SearchBenchResult) -> Iterator[list[object]]:
    for each in result.searches:
        sources = [file.source for file in each.release_result.files]
        yield from search_rows(each.run, each.recipe, each.option.name, sources, LABELS, each.found, each.ranks)
