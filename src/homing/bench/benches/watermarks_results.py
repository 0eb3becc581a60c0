"""The report of the watermarks bench: the paper's last table with ours, a figure, and a CSV row for each copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from statistics import fmean
from typing import TYPE_CHECKING

from homing.activation.recipe import PAPER_BUDGET
from homing.bench.benches.watermarks import LABELS, METHODS, WatermarksResult, WatermarksRow
from homing.bench.protocol.report import INTERVALS, common_numbers, summary_line
from homing.bench.published import TABLE, WATERMARKS, Published, PublishedWatermark
from homing.bench.results import CsvTable, Figure, Results, Table, bars
from homing.watermarks.settings import BITS

if TYPE_CHECKING:
    import matplotlib.figure

_NAMES = {"ssl": "SSL watermark", "hidden": "HiDDeN"}
_BY_PROBE = "IVF4096,PQ8x8"  # the paper's index, one probe


def results(result: WatermarksResult, command: str) -> Results:
    """The report."""
    rows = [each.row for each in result.method_results]
    bits = [row for row in rows if row.bit_accuracy is not None]
    return Results(
        title="Activation compared with watermarks",
        summary="Recall of edited copies, by index search with one probe or by an identifier of "
        f"{BITS} bits: {summary_line(result.runs[0])}",
        command=command,
        numbers=common_numbers(
            result.runs,
            rows=[asdict(row) for row in rows],
            settings={
                "edits": LABELS,
                "watermarks": list(result.bench.watermarks),
                "bits": BITS,
                "budget": str(PAPER_BUDGET),
                "key": result.bench.key,
                "intervals": INTERVALS,
            },
            seconds=result.seconds,
        ),
        tables=[_table(rows), _details(rows), *([_bits(bits)] if bits else [])],
        figures=[_figure(rows)],
        csv_table=CsvTable(
            name="copies",
            content="every copy",
            headings=["method", "codebook", "photo", "edit", "is_correct", "correct_bits"],
            rows=_copies(result),
        ),
    )


def terminal_table(result: WatermarksResult) -> list[list[str]]:
    """The table for a terminal, with a row for each edit."""
    rows = [each.row for each in result.method_results]
    headings = ["edit", *(_name(row) if row.codebook is None else f"{row.method},\n{row.codebook}" for row in rows)]
    lines = [[label, *(f"{row.recall[label]:.2f}" for row in rows)] for label in LABELS]
    lines.append(["mean", *(f"{row.mean:.3f}" for row in rows)])
    lines.append(["bit accuracy", *(_accuracy(row) for row in rows)])
    lines.append(["PSNR, dB", *("" if row.psnr is None else f"{row.psnr:.1f}" for row in rows)])
    return [headings, *lines]


def _table(rows: list[WatermarksRow]) -> Table:
    """The paper's last table: measured rows, then published ones."""
    ours = [
        [_name(row), _index(row), *(f"{share:.2f}" for share in row.recall.values()), f"{row.mean:.3f}"] for row in rows
    ]
    methods = {recipe: method for method, recipe in METHODS.items()}
    found = [
        _published([methods[row.recipe], f"{_BY_PROBE} (published)"], row)
        for row in TABLE
        if (row.index, row.probes) == (_BY_PROBE, 1) and row.recipe in methods
    ]
    watermarks = [_published([_NAMES[row.name], "(published)"], row) for row in WATERMARKS]
    return Table(
        name="table",
        caption="Recall by edit. With an index, the original is the nearest reference with one probe; with a "
        f"watermark, all {BITS} bits of the identifier are decoded correctly. Published rows are of SSCD and DINO "
        "among a million references (Fernandez et al., 2023).",
        headings=["method", "index", *LABELS, "mean"],
        rows=[*ours, *found, *watermarks],
        groups=[len(ours)],
    )


def _published(head: list[str], row: Published | PublishedWatermark) -> list[str]:
    return [*head, *(f"{row.recall[label]:.2f}" for label in LABELS), f"{row.mean:.2f}"]


def _details(rows: list[WatermarksRow]) -> Table:
    return Table(
        name="details",
        caption="The mean over the edits with its interval, the share of correct bits, and quality of the files as "
        "written: all methods have the same budget and the same PSNR.",
        headings=[
            "method",
            "index",
            "mean, 95 % interval",
            "bit accuracy",
            "PSNR, dB",
            "SSIM",
            "modified",
            "s per photo",
        ],
        rows=[_detail(row) for row in rows],
    )


def _detail(row: WatermarksRow) -> list[str]:
    low, high = row.mean_interval
    quality = [""] * 4
    if row.psnr is not None and row.ssim is not None and row.seconds_per_photo is not None:
        modified = f"{row.modified} of {row.photos}"
        quality = [f"{row.psnr:.1f}", f"{row.ssim:.3f}", modified, f"{row.seconds_per_photo:.2f}"]
    return [_name(row), _index(row), f"{row.mean:.3f} ({low:.3f}–{high:.3f})", _accuracy(row), *quality]


def _bits(rows: list[WatermarksRow]) -> Table:
    return Table(
        name="bits",
        caption=f"The share of correct bits of {BITS}, by edit; 0.5 is expected at random.",
        headings=["method", *LABELS, "mean"],
        rows=[
            [_name(row), *(f"{share:.3f}" for share in row.bit_accuracy.values()), _accuracy(row)]
            for row in rows
            if row.bit_accuracy is not None
        ],
    )


def _figure(rows: list[WatermarksRow]) -> Figure:
    """Recall by edit with intervals, with the first codebook."""
    first = rows[0].codebook
    compared = [row for row in rows if row.codebook in (first, None)]
    shares = {_name(row): [(row.recall[label], *row.interval[label]) for label in LABELS] for row in compared}

    def draw(canvas: matplotlib.figure.Figure) -> None:
        axes = canvas.subplots()
        bars(axes, shares)
        axes.set_xticks(range(len(LABELS)), LABELS, rotation=40, ha="right")
        axes.set_ylim(0, 1.02)
        axes.set_ylabel("recall")
        axes.legend(ncols=len(compared), loc="lower left", bbox_to_anchor=(0, 1))

    return Figure(
        name="recall", caption=f"Recall by edit with 95 % intervals, {first}, one probe.", draw=draw, size=(8.0, 3.8)
    )


def _name(row: WatermarksRow) -> str:
    return _NAMES.get(row.method, row.method)


def _index(row: WatermarksRow) -> str:
    """Codebook and spec: several codebooks may have the same spec."""
    return ", ".join(dict.fromkeys(each for each in (row.codebook, row.index) if each))


def _accuracy(row: WatermarksRow) -> str:
    return "" if row.bit_accuracy is None else f"{fmean(row.bit_accuracy.values()):.3f}"


def _copies(result: WatermarksResult) -> Iterator[list[object]]:
    for each in result.method_results:
        for photo, source in enumerate(each.sources):
            for i, label in enumerate(LABELS):
                correct_bits = "" if each.correct_bits is None else int(each.correct_bits[photo, i])
                is_correct = int(each.correct[photo, i])
                yield [each.row.method, each.row.codebook or "", source, label, is_correct, correct_bits]
