"""What the search bench found, told: what each option adds and costs, a figure of both, and every search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from homing.collection.turning import TURNS
from homing.evaluation.benches.search import AGAIN, LABELS, OPTIONS, Row, SearchResult
from homing.evaluation.protocol.setting import Subject
from homing.evaluation.protocol.told import INTERVALS, SEARCH_HEADINGS, numbered, numbers, search_lines, setting_line
from homing.evaluation.results import Figure, Lines, Results, Table, colours

if TYPE_CHECKING:
    import matplotlib.figure

_MARKS = "o<^>vdsDPX*"  # of the options, in their order
_COSTS = ["codes", "descriptors", "ms", "passes"]


def results(result: SearchResult, command: str) -> Results:
    """All there is to say."""
    return Results(
        title="What the options of a search add, and cost",
        setting=f"Recall at rank 1 of edited copies: {setting_line(result.subjects[0])}",
        command=command,
        numbers=numbers(
            result.subjects,
            rows=[asdict(row) for row in result.rows],
            settings={
                "edits": LABELS,
                "recipe": result.bench.recipe,
                "searches": [option.name for option in OPTIONS],
                "intervals": INTERVALS,
            },
            seconds=result.seconds,
        ),
        tables=[_table(result), _edits(result)],
        figures=[_figure(result, subject, number) for number, subject in enumerate(result.subjects, 1)],
        lines=Lines(headings=["search" if each == "probes" else each for each in SEARCH_HEADINGS], rows=_lines(result)),
    )


def shown(result: SearchResult) -> list[list[str]]:
    """The table for a terminal."""
    headings = ["codebook", "recipe", "search", "recall", "adds", *_COSTS]
    return [
        headings,
        *([row.codebook, row.recipe, row.search, f"{row.mean:.3f}", _added(row), *_costs(row)] for row in result.rows),
    ]


def _table(result: SearchResult) -> Table:
    rows = [
        [
            row.codebook,
            row.recipe,
            row.search,
            f"{row.mean:.3f} ({row.mean_interval.low:.3f}–{row.mean_interval.high:.3f})",
            f"{_added(row)} ({row.adds_interval.low:+.3f} to {row.adds_interval.high:+.3f})" if _added(row) else "",
            *_costs(row),
        ]
        for row in result.rows
    ]
    return Table(
        name="table",
        caption="Recall at rank 1, mean of the fourteen edits, with its 95 % interval, and what an option adds to one "
        "probe. Then what a query costs: codes and full descriptors compared, its time on one core, passes of "
        "the network. Margin: every cell whose centre is so little farther than the nearest, in squared distance. "
        f"Turned: as it is, in quarter turns and mirrored, {TURNS} in all. Ranked again: the {AGAIN} nearest, "
        "by descriptors.",
        headings=["codebook", "recipe", "search", "mean, 95 % interval", "adds", *_COSTS],
        rows=rows,
        groups=range(len(OPTIONS), len(rows), len(OPTIONS)),
    )


def _edits(result: SearchResult) -> Table:
    rows = [
        [row.codebook, row.recipe, row.search, *(f"{recall:.2f}" for recall in row.recall.values())]
        for row in result.rows
    ]
    return Table(
        name="edits",
        caption="Recall at rank 1 by edit.",
        headings=["codebook", "recipe", "search", *LABELS],
        rows=rows,
        groups=range(len(OPTIONS), len(rows), len(OPTIONS)),
    )


def _added(row: Row) -> str:
    return "" if row.search == OPTIONS[0].name else f"{row.adds:+.3f}"


def _costs(row: Row) -> list[str]:
    milliseconds = "" if row.milliseconds is None else f"{row.milliseconds:.2f}"
    return [f"{row.codes:,.0f}", f"{row.descriptors:,.0f}", milliseconds, str(row.passes)]


def _figure(result: SearchResult, subject: Subject, number: int) -> Figure:
    """Recall against cost: a colour for each recipe, a mark for each option."""
    rows = [row for row in result.rows if row.codebook == subject.codebook.name]
    colour = colours(list(dict.fromkeys(row.recipe for row in rows)))
    marks = dict(zip((option.name for option in OPTIONS), _MARKS, strict=True))

    def draw(canvas: matplotlib.figure.Figure) -> None:
        axes = canvas.subplots()
        for row in rows:
            low, high = row.mean_interval
            axes.errorbar(
                [row.codes + row.descriptors],
                [row.mean],
                yerr=[[row.mean - low], [high - row.mean]],
                fmt=marks[row.search],
                color=colour[row.recipe],
                markersize=6,
                elinewidth=0.7,
            )
        for recipe in colour:
            axes.plot([], [], "s", color=colour[recipe], label=recipe)
        for name, mark in marks.items():
            axes.plot([], [], mark, color="none", markeredgecolor="black", label=name)
        axes.set_xscale("log")
        axes.set_xlabel("codes and descriptors compared per query")
        axes.set_ylabel("recall at rank 1")
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))

    return Figure(
        name=numbered("search", number),
        caption="Recall, mean of the fourteen edits with 95 % intervals, against what a query is compared with, "
        f"{subject.codebook.name}.",
        draw=draw,
        size=(8.0, 4.4),
    )


def _lines(result: SearchResult) -> Iterator[list[object]]:
    for each in result.searched:
        sources = [file.source for file in each.made.files]
        yield from search_lines(each.subject, each.recipe, each.option.name, sources, LABELS, each.found, each.ranks)
