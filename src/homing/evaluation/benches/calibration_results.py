"""What the bench of chances found, told: stated against observed, in a table and a figure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from homing.evaluation.benches.calibration import MIN_EXPECTED, STATED_PROBABILITIES, CalibrationResult, CalibrationRow
from homing.evaluation.results import Figure, Results, Table, colors

if TYPE_CHECKING:
    import matplotlib.figure

_HEADINGS = ["codebook", "by", "references", *(f"{stated:g}" for stated in STATED_PROBABILITIES), "searches"]


def results(result: CalibrationResult, command: str) -> Results:
    """All there is to say."""
    photos = len(result.distractors.descriptors)
    return Results(
        title="How often unrelated photos come as near as stated",
        summary=f"{photos:,} unrelated photos: each half searched for in collections of the other{_exclusion(result)}.",
        command=command,
        numbers={
            "rows": [
                {**asdict(row), "observed": row.observed, "enough_searches": row.enough_searches} for row in result.rows
            ],
            "settings": {
                "distractors": photos,
                "stated": list(STATED_PROBABILITIES),
                "min_expected": MIN_EXPECTED,
                "related_pairs_excluded": result.related,
            },
            "codebooks": {book.name: {"fingerprint": book.fingerprint} for book in result.codebooks},
            "seconds": round(result.seconds, 1),
            "failures": result.distractors.failures,
        },
        tables=[
            Table(
                name="table",
                caption="The share of searches for unrelated photos that found something of at most the chance that "
                "stands above, as a multiple of that chance: 1 where it is right. A dash where fewer than "
                f"{MIN_EXPECTED} would be expected.",
                headings=_HEADINGS,
                rows=_rows(result),
            )
        ],
        figures=[_figure(result)],
    )


def _exclusion(result: CalibrationResult) -> str:
    return f", but for {result.related} pairs that show one scene" if result.bench.exclude_related else ""


def terminal_table(result: CalibrationResult) -> list[list[str]]:
    """The table for a terminal."""
    return [_HEADINGS, *_rows(result)]


def _rows(result: CalibrationResult) -> list[list[str]]:
    some = [
        result.rows[start : start + len(STATED_PROBABILITIES)]
        for start in range(0, len(result.rows), len(STATED_PROBABILITIES))
    ]
    return [
        [
            row[0].codebook,
            row[0].by,
            f"{row[0].references:,}",
            *(f"{each.observed / each.stated:.2f}" if each.enough_searches else "–" for each in row),
            f"{row[0].searches:,}",
        ]
        for row in some
    ]


def _figure(result: CalibrationResult) -> Figure:
    judged_rows = [row for row in result.rows if row.enough_searches and row.found]
    series = list(dict.fromkeys(map(_series_name, result.rows)))

    def draw(canvas: matplotlib.figure.Figure) -> None:
        axes = canvas.subplots()
        axes.fill_between(
            STATED_PROBABILITIES,
            [each / 2 for each in STATED_PROBABILITIES],
            [each * 2 for each in STATED_PROBABILITIES],
            color="#8883",
            lw=0,
        )
        axes.plot(STATED_PROBABILITIES, STATED_PROBABILITIES, color="#888", lw=0.8)
        for name, color in colors(series).items():
            for size in dict.fromkeys(row.references for row in judged_rows):
                points = [row for row in judged_rows if _series_name(row) == name and row.references == size]
                axes.plot([row.stated for row in points], [row.observed for row in points], "o-", color=color, ms=3)
            axes.plot([], [], "o-", color=color, label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("stated probability")
        axes.set_ylabel("share of searches")
        axes.legend()

    return Figure(
        name="calibration",
        caption="The share of searches for unrelated photos that found something of at most a chance, against that "
        "chance; a line for each size of the collection, in gray right within a factor of 2.",
        draw=draw,
    )


def _series_name(row: CalibrationRow) -> str:
    return f"{row.codebook}, by {row.by}"
