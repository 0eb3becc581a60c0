"""The report of the retrieval bench: the paper's table with ours, a figure, and a CSV row for each search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from homing.bench.benches.gains import gains, gains_table
from homing.bench.benches.retrieval import LABELS, RetrievalResult, RetrievalRow
from homing.bench.protocol.report import (
    INTERVALS,
    SEARCH_HEADINGS,
    common_numbers,
    describe_probes,
    format_probes,
    search_rows,
    summary_line,
)
from homing.bench.published import TABLE, Published
from homing.bench.results import CsvTable, Figure, Results, Table, bars

if TYPE_CHECKING:
    import matplotlib.figure

_HEADINGS = ["network", "index", "probes", "bytes", "ms", "recipe", *LABELS, "mean"]


def results(result: RetrievalResult, command: str) -> Results:
    """The report."""
    return Results(
        title="Recall of edited copies",
        summary=f"Recall at rank 1: {summary_line(result.codebook_results[0].run)}",
        command=command,
        numbers=common_numbers(
            [each.run for each in result.codebook_results],
            rows=[asdict(row) for row in result.rows],
            settings={
                "edits": LABELS,
                "recipes": list(result.bench.recipes),
                "probes": list(result.bench.probes),
                "intervals": INTERVALS,
            },
            seconds=result.seconds,
        )
        | {"gains": [asdict(gain) for codebook_result in result.codebook_results for gain in gains(codebook_result)]},
        tables=[_table(result), *([table] if (table := gains_table(result)).rows else []), _details(result)],
        figures=[_figure(result)],
        csv_table=CsvTable(headings=SEARCH_HEADINGS, rows=_searches(result)),
    )


def terminal_table(result: RetrievalResult) -> list[list[str]]:
    """The table for a terminal: gains for several codebooks; for one codebook, a row for each edit."""
    table = gains_table(result)
    if len(result.codebook_results) > 1 and table.rows:
        return [list(table.headings), *map(list, table.rows)]
    rows = result.rows
    headings = [
        "edit",
        *(f"{row.codebook},\n{row.recipe},\n{describe_probes(row.probes, row.failure is not None)}" for row in rows),
    ]
    lines = [[label, *(f"{row.recall[label]:.2f}" for row in rows)] for label in LABELS]
    lines.append(["mean", *(f"{row.mean:.3f}" for row in rows)])
    lines.append(["95 % from", *(f"{row.mean_interval.low:.3f}" for row in rows)])
    lines.append(["95 % to", *(f"{row.mean_interval.high:.3f}" for row in rows)])
    lines.append(["PSNR, dB", *("" if row.psnr is None else f"{row.psnr:.1f}" for row in rows)])
    return [headings, *lines]


def _table(result: RetrievalResult) -> Table:
    """The paper's first table: measured rows, then published ones."""
    ours = [_line(row) for row in result.rows]
    published = [_published(row) for row in _comparable(result)]
    return Table(
        name="table",
        caption="Recall at rank 1 by edit. Rows named SSCD are as published (Fernandez et al., 2023): 10,000 photos "
        "among a million references.",
        headings=_HEADINGS,
        rows=[*ours, *published],
        groups=[len(ours)] if published else [],
    )


def _comparable(result: RetrievalResult) -> list[Published]:
    """Published rows with the same recipes and numbers of probes."""
    wanted = {(row.recipe, row.probes) for row in result.rows}
    return [row for row in TABLE if (row.recipe, row.probes) in wanted]


def _line(row: RetrievalRow) -> list[str]:
    milliseconds = "" if row.milliseconds is None else f"{row.milliseconds.homing:.2f}"
    index = "none" if row.probes == "exact" else row.spec
    probes = format_probes(row.probes, row.failure is not None)
    head = [Path(row.extractor).name, index, probes, str(row.bytes_per_vector), milliseconds, row.recipe]
    return [*head, *(f"{recall:.2f}" for recall in row.recall.values()), f"{row.mean:.3f}"]


def _published(row: Published) -> list[str]:
    index = "none" if row.probes == "exact" else row.index
    head = ["SSCD", index, str(row.probes), str(row.bytes_per_vector), f"{row.search_ms:g}", row.recipe]
    return [*head, *(f"{row.recall[label]:.2f}" for label in LABELS), f"{row.mean:.2f}"]


def _details(result: RetrievalResult) -> Table:
    """Further figures, among them the time per photo, by which the paper's appendix compares recipes."""
    headings = ["network", "index", "probes", "recipe", "mean, 95 % interval", "at 10", "at 100", "p_f"]
    headings += ["ms, homing", "ms, FAISS", "PSNR, dB", "SSIM", "activated", "s per photo", "÷ recipe paper"]
    usual = {(row.codebook, row.probes): row.seconds_per_photo for row in result.rows if row.recipe == "paper"}
    ours = [_detail(row, usual.get((row.codebook, row.probes))) for row in result.rows]
    published = [_published_detail(row) for row in _comparable(result)]
    return Table(
        name="details",
        caption="Means over the edits: recall at rank 1 with its interval, and at ranks 10 and 100; p_f, the share of "
        "copies that fall into another cell than their original; time of one search on one core; quality of the files "
        "as written; time to release a photo, and divided by that of the recipe paper. Rows named SSCD are as "
        "published: measured on a GPU, for the loop alone; ours includes reading, writing and measuring the file.",
        headings=headings,
        rows=[*ours, *published],
        groups=[len(ours)] if published else [],
    )


def _detail(row: RetrievalRow, usual: float | None) -> list[str]:
    """`usual` are the seconds per photo of the recipe `paper`."""
    times = ["", ""] if row.milliseconds is None else [f"{each:.3f}" for each in row.milliseconds]
    quality = [""] * 5
    if row.psnr is not None and row.ssim is not None and row.seconds_per_photo is not None:
        activated = f"{row.activated} of {row.photos}"
        quality = [f"{row.psnr:.1f}", f"{row.ssim:.3f}", activated, *_time(row.seconds_per_photo, usual)]
    failure = "" if row.failure is None or row.probes == "exact" else f"{fmean(row.failure.values()):.3f}"
    low, high = row.mean_interval
    return [
        Path(row.extractor).name,
        "none" if row.probes == "exact" else row.spec,
        format_probes(row.probes, row.failure is not None),
        row.recipe,
        f"{row.mean:.3f} ({low:.3f}–{high:.3f})",
        f"{row.recall_at[10]:.3f}",
        f"{row.recall_at[100]:.3f}",
        failure,
        *times,
        *quality,
    ]


def _published_detail(row: Published) -> list[str]:
    head = ["SSCD", "none" if row.probes == "exact" else row.index, str(row.probes), row.recipe, f"{row.mean:.2f}"]
    usual = next(each.activation_ms for each in TABLE if each.recipe == "paper" and each.activation_ms)
    time = ["", ""] if row.activation_ms is None else _time(row.activation_ms / 1000, usual / 1000)
    return [*head, *[""] * 8, *time]


def _time(seconds: float, usual: float | None) -> list[str]:
    return [f"{seconds:.3f}", "" if usual is None else f"×{seconds / usual:.2f}"]


def _figure(result: RetrievalResult) -> Figure:
    """Recall by edit with intervals, of the first codebook and number of probes."""
    first = result.codebook_results[0].searches[0].row
    rows = [row for row in result.rows if (row.codebook, row.probes) == (first.codebook, first.probes)]
    how = f"{first.codebook}, {describe_probes(first.probes, first.failure is not None)}"
    shares = {row.recipe: [(row.recall[label], *row.interval[label]) for label in LABELS] for row in rows}

    def draw(canvas: matplotlib.figure.Figure) -> None:
        axes = canvas.subplots()
        bars(axes, shares)
        axes.set_xticks(range(len(LABELS)), LABELS, rotation=40, ha="right")
        axes.set_ylim(0, 1.02)
        axes.set_ylabel("recall at rank 1")
        axes.legend(ncols=len(rows), loc="lower left", bbox_to_anchor=(0, 1))

    return Figure(
        name="recall",
        caption=f"Recall by edit with 95 % intervals, {how}.",
        draw=draw,
        size=(8.0, 3.8),
    )


def _searches(result: RetrievalResult) -> Iterator[list[object]]:
    for codebook_result in result.codebook_results:
        for each in codebook_result.searches:
            row = each.row
            yield from search_rows(
                codebook_result.run, row.recipe, row.probes, each.sources, LABELS, each.found, each.ranks
            )
