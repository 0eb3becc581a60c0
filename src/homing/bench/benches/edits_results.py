"""The report of the edits bench: recall against strength by family, and a CSV row for each search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from homing.bench.benches.edits import EditsResult, EditSweep
from homing.bench.protocol.report import (
    INTERVALS,
    SEARCH_HEADINGS,
    common_numbers,
    describe_probes,
    numbered_name,
    search_rows,
    summary_line,
)
from homing.bench.results import CsvTable, Figure, Results, Table, colors
from homing.edits import SWEEPS

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

# The unit of the strength of each family.
_STRENGTH = {
    "rotation": "angle in degrees",
    "crop": "share of the area kept",
    "resize": "share of the area left",
    "blur": "sigma in pixels",
    "jpeg": "quality",
    "contrast": "factor",
    "brightness": "factor",
    "hue": "share of a full turn",
}
_TICKS = {
    "rotation": (-90, -45, 0, 45, 90),
    "hue": (-0.4, -0.2, 0, 0.2, 0.4),
}  # where the default of matplotlib is hard to read
_ACROSS = 4


def results(result: EditsResult, command: str) -> Results:
    """The report."""
    return Results(
        title="Recall by strength of the edit",
        summary=f"Recall at rank 1 of copies at increasing strengths of edits: {summary_line(result.runs[0])}",
        command=command,
        numbers=common_numbers(
            result.runs,
            rows=[asdict(row) for sweep in result.sweeps for row in sweep.rows],
            settings={
                "families": list(_families(result)),
                "recipes": list(result.bench.recipes),
                "probes": list(result.bench.probes),
                "intervals": INTERVALS,
            },
            seconds=result.seconds,
        ),
        tables=[_means(result), *(_strengths(result, family) for family in _families(result))],
        figures=list(_figures(result)),
        csv_table=CsvTable(headings=SEARCH_HEADINGS, rows=_searches(result)),
    )


def terminal_table(result: EditsResult) -> list[list[str]]:
    """The table for a terminal: means over the strengths of each family."""
    several = {key: [_mean(sweep) for sweep in sweeps] for key, sweeps in _series(result).items()}
    headings = ["mean over", *(f"{key.codebook},\n{key.recipe},\n{key.search}" for key in several)]
    return [headings, *([family, *row] for family, *row in zip(_families(result), *several.values(), strict=True))]


class _Key(NamedTuple):
    """Identifies a line of a figure, or a row of a table."""

    recipe: str
    codebook: str
    search: str


def _families(result: EditsResult) -> dict[str, None]:
    return dict.fromkeys(result.bench.families)


def _series(result: EditsResult) -> dict[_Key, list[EditSweep]]:
    """The sweeps of all families, by line."""
    series: dict[_Key, list[EditSweep]] = {}
    for sweep in result.sweeps:
        codebook = sweep.run.codebook
        key = _Key(sweep.recipe, codebook.name, describe_probes(sweep.probes, codebook.has_cells))
        series.setdefault(key, []).append(sweep)
    return series


def _mean(sweep: EditSweep) -> str:
    return f"{fmean(row.recall for row in sweep.rows):.3f}"


def _means(result: EditsResult) -> Table:
    """The mean recall of each family."""
    cells = {
        key: [f"{_mean(sweep)} ({sweep.intervals.mean.low:.3f}–{sweep.intervals.mean.high:.3f})" for sweep in sweeps]
        for key, sweeps in _series(result).items()
    }
    caption = "Recall at rank 1, mean over all strengths of a family, with its 95 % interval"
    return _table("families", caption, list(_families(result)), cells)


def _strengths(result: EditsResult, family: str) -> Table:
    """The recall of one family at each strength."""
    cells = {
        key: [f"{row.recall:.2f}" for row in sweep.rows]
        for key, sweeps in _series(result).items()
        for sweep in sweeps
        if sweep.family == family
    }
    headings = [_number(edit.strength or 0) for edit in SWEEPS[family]]
    return _table(family, f"Recall at rank 1 after {family}, by {_STRENGTH[family]}", headings, cells)


def _table(name: str, caption: str, headings: Sequence[str], cells: Mapping[_Key, Sequence[str]]) -> Table:
    """A table with a row for each recipe; codebook and search are columns if there are several, else in the caption."""
    differs = {field: len({getattr(key, field) for key in cells}) > 1 for field in ("codebook", "search")}
    columns = ["recipe", *(field for field in differs if differs[field])]
    first = next(iter(cells))
    alike = [getattr(first, field) for field in differs if not differs[field]]
    return Table(
        name=name,
        caption=", ".join([caption, *alike]) + ".",
        headings=[*columns, *headings],
        rows=[[*(getattr(key, column) for column in columns), *row] for key, row in cells.items()],
    )


def _number(strength: float) -> str:
    return f"{strength:g}".replace("-", "−")


def _figures(result: EditsResult) -> Iterator[Figure]:
    """A figure for each codebook and number of probes: a panel for each family, a line for each recipe."""
    together: dict[tuple[str, str], list[EditSweep]] = {}
    for sweep in result.sweeps:
        codebook = sweep.run.codebook
        together.setdefault((codebook.name, describe_probes(sweep.probes, codebook.has_cells)), []).append(sweep)
    for number, ((name, probes), sweeps) in enumerate(together.items(), start=1):
        yield _figure(numbered_name("sweeps", number), f"{name}, {probes}", sweeps)


def _figure(name: str, what: str, sweeps: Sequence[EditSweep]) -> Figure:
    families = list(dict.fromkeys(sweep.family for sweep in sweeps))
    recipes = list(dict.fromkeys(sweep.recipe for sweep in sweeps))
    across = min(len(families), _ACROSS)
    down = -(-len(families) // across)
    color = colors(recipes)

    def draw(canvas: matplotlib.figure.Figure) -> None:
        panels = canvas.subplots(down, across, squeeze=False, sharey=True).ravel()
        for axes, family in zip(panels, families, strict=False):
            _panel(axes, [sweep for sweep in sweeps if sweep.family == family], color)
        for axes in panels[len(families) :]:
            axes.set_visible(False)
        for axes in panels[::across]:
            axes.set_ylabel("recall at rank 1")
        handles, labels = panels[0].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside upper left", ncols=len(recipes))

    return Figure(
        name=name,
        caption=f"Recall at rank 1 against the strength of the edit, with 95 % intervals, {what}. At the strength "
        "that changes nothing, the copy is the released file itself.",
        draw=draw,
        size=(2.6 * across, 0.4 + 2.4 * down),
    )


def _panel(axes: matplotlib.axes.Axes, sweeps: Sequence[EditSweep], color: dict[str, str]) -> None:
    """The panel of one family: a line for each recipe, its interval shaded."""
    for sweep in sweeps:
        rows = sweep.rows
        strengths = [row.strength for row in rows]
        lows, highs = zip(*(row.interval for row in rows), strict=True)
        axes.fill_between(strengths, lows, highs, color=color[sweep.recipe], alpha=0.18, linewidth=0)
        axes.plot(strengths, [row.recall for row in rows], "o-", color=color[sweep.recipe], label=sweep.recipe)
    family = sweeps[0].family
    axes.set_title(family)
    axes.set_xlabel(_STRENGTH[family])
    axes.set_ylim(0, 1.03)
    if family in _TICKS:
        axes.set_xticks(_TICKS[family])


def _searches(result: EditsResult) -> Iterator[list[object]]:
    for each in result.sweeps:
        labels = [edit.label for edit in each.edits]
        yield from search_rows(each.run, each.recipe, each.probes, each.sources, labels, each.found, each.ranks)
