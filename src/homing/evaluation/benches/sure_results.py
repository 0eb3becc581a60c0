"""What the bench of chances found, told: stated against observed, in a table and a figure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from homing.evaluation.benches.sure import ENOUGH, STATED, Row, SureResult
from homing.evaluation.results import Figure, Results, Table, colours

if TYPE_CHECKING:
    import matplotlib.figure

_HEADINGS = ["codebook", "by", "references", *(f"{stated:g}" for stated in STATED), "searches"]


def results(result: SureResult, command: str) -> Results:
    """All there is to say."""
    photos = len(result.strangers.descriptors)
    return Results(
        title="How often unrelated photos come as near as stated",
        setting=f"{photos:,} unrelated photos: each half searched for in collections of the other{_left_out(result)}.",
        command=command,
        numbers={
            "rows": [{**asdict(row), "observed": row.observed, "judged": row.judged} for row in result.rows],
            "settings": {
                "strangers": photos,
                "stated": list(STATED),
                "expected_where_judged": ENOUGH,
                "related_pairs_left_out": result.related,
            },
            "codebooks": {book.name: {"fingerprint": book.fingerprint} for book in result.codebooks},
            "seconds": round(result.seconds, 1),
            "failures": result.strangers.failures,
        },
        tables=[
            Table(
                name="table",
                caption="The share of searches for unrelated photos that found something of at most the chance that "
                "stands above, as a multiple of that chance: 1 where it is right. A dash where fewer than "
                f"{ENOUGH} would be expected.",
                headings=_HEADINGS,
                rows=_rows(result),
            )
        ],
        figures=[_figure(result)],
    )


def _left_out(result: SureResult) -> str:
    return f", but for {result.related} pairs that show one scene" if result.bench.leave_out_related else ""


def shown(result: SureResult) -> list[list[str]]:
    """The table for a terminal."""
    return [_HEADINGS, *_rows(result)]


def _rows(result: SureResult) -> list[list[str]]:
    some = [result.rows[start : start + len(STATED)] for start in range(0, len(result.rows), len(STATED))]
    return [
        [
            row[0].codebook,
            row[0].by,
            f"{row[0].references:,}",
            *(f"{each.observed / each.stated:.2f}" if each.judged else "–" for each in row),
            f"{row[0].searches:,}",
        ]
        for row in some
    ]


def _figure(result: SureResult) -> Figure:
    judged = [row for row in result.rows if row.judged and row.found]
    ways = list(dict.fromkeys(map(_way, result.rows)))

    def draw(canvas: matplotlib.figure.Figure) -> None:
        axes = canvas.subplots()
        axes.fill_between(STATED, [each / 2 for each in STATED], [each * 2 for each in STATED], color="#8883", lw=0)
        axes.plot(STATED, STATED, color="#888", lw=0.8)
        for way, colour in colours(ways).items():
            for size in dict.fromkeys(row.references for row in judged):
                points = [row for row in judged if _way(row) == way and row.references == size]
                axes.plot([row.stated for row in points], [row.observed for row in points], "o-", color=colour, ms=3)
            axes.plot([], [], "o-", color=colour, label=way)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("chance stated")
        axes.set_ylabel("share of searches")
        axes.legend()

    return Figure(
        name="chances",
        caption="The share of searches for unrelated photos that found something of at most a chance, against that "
        "chance; a line for each size of the collection, in grey right within a factor of 2.",
        draw=draw,
    )


def _way(row: Row) -> str:
    return f"{row.codebook}, by {row.by}"
