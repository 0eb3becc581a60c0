"""The report of the calibration bench: stated and observed probabilities, in a table and a figure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from homing.bench.benches.calibration import MIN_EXPECTED, STATED_PROBABILITIES, CalibrationResult, CalibrationRow
from homing.bench.results import Figure, Results, Table, colors

if TYPE_CHECKING:
    import matplotlib.figure

_HEADINGS = ["codebook", "compared", "references", *(f"{stated:g}" for stated in STATED_PROBABILITIES), "searches"]


def results(result: CalibrationResult, command: str) -> Results:
    """The report."""
    photos = len(result.distractors.descriptors)
    return Results(
        title="Calibration of false-match probabilities",
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
                caption="Observed rate of false matches, divided by the stated false-match probability in the heading: "
                "1 is exact, above 1 false matches are more frequent than stated. A dash if fewer than "
                f"{MIN_EXPECTED} false matches are expected.",
                headings=_HEADINGS,
                rows=_rows(result),
            )
        ],
        figures=[_figure(result)],
    )


def _exclusion(result: CalibrationResult) -> str:
    return f", without {result.related} pairs of the same scene" if result.bench.exclude_related else ""


def terminal_table(result: CalibrationResult) -> list[list[str]]:
    """The table for a terminal."""
    return [_HEADINGS, *_rows(result)]


def _rows(result: CalibrationResult) -> list[list[str]]:
    reported = [
        result.rows[start : start + len(STATED_PROBABILITIES)]
        for start in range(0, len(result.rows), len(STATED_PROBABILITIES))
    ]
    return [
        [
            row[0].codebook,
            row[0].compared,
            f"{row[0].references:,}",
            *(f"{each.observed / each.stated:.2f}" if each.enough_searches else "–" for each in row),
            f"{row[0].searches:,}",
        ]
        for row in reported
    ]


def _figure(result: CalibrationResult) -> Figure:
    meaningful_rows = [row for row in result.rows if row.enough_searches and row.found]
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
            for size in dict.fromkeys(row.references for row in meaningful_rows):
                points = [row for row in meaningful_rows if _series_name(row) == name and row.references == size]
                axes.plot([row.stated for row in points], [row.observed for row in points], "o-", color=color, ms=3)
            axes.plot([], [], "o-", color=color, label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("stated false-match probability")
        axes.set_ylabel("observed share of searches")
        axes.legend()

    return Figure(
        name="calibration",
        caption="Observed rate of false matches against the stated false-match probability; a line for each size of "
        "the collection. Gray: within a factor of 2.",
        draw=draw,
    )


def _series_name(row: CalibrationRow) -> str:
    return f"{row.codebook}, by {row.compared}"
