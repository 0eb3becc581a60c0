"""The report of the quality bench: quality, budgets, and the trade-off, with published figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from homing.bench.benches.quality import QualityResult, QualityRow
from homing.bench.benches.quality_figures import figures, pictures
from homing.bench.protocol.config import PASSIVE
from homing.bench.protocol.report import INTERVALS, common_numbers, summary_line
from homing.bench.published import AVERAGE_PRECISION_GAIN, BUDGETS, QUALITY, TABLE
from homing.bench.results import CsvTable, Results, Table

_FIRST_HEADINGS = ["network", "index", "recipe", "budget"]


def results(result: QualityResult, command: str) -> Results:
    """The report."""
    runs = [codebook_result.run for codebook_result in result.codebook_results]
    return Results(
        title="Visual quality of activated photos",
        summary=f"Quality of the files as written, and recall of their edited copies: {summary_line(runs[0])}",
        command=command,
        numbers=common_numbers(
            runs,
            rows=[asdict(row) for row in result.rows],
            settings={
                "recipes": list(result.bench.recipes),
                "strengths": [str(budget) for budget in result.bench.strengths()],
                "budgets": [str(budget) for budget in result.bench.compared_budgets()],
                "probes": result.bench.probes,
                "spread": "standard deviation over the photos",
                "intervals": INTERVALS,
            },
            seconds=result.seconds,
        ),
        tables=[_quality(result), _trade_off(result), _budgets(result)],
        figures=list(figures(result)),
        pictures=list(pictures(result)),
        csv_table=CsvTable(
            name="photos",
            content="every photo and release",
            headings=[
                "codebook",
                "recipe",
                "photo",
                "state",
                "psnr",
                "ssim",
                "linf",
                "lpips",
                "distance",
                "copies_found",
            ],
            rows=_lines(result),
        ),
    )


def terminal_table(result: QualityResult) -> list[list[str]]:
    """The trade-off for a terminal."""
    headings = ["codebook", "release", *_headings(result), "activated", "recall", "µAP", "distance"]
    rows = [
        [
            row.codebook,
            row.release,
            *_quality_cells(result, row),
            _activated(row),
            f"{row.recall:.3f}",
            f"{row.average_precision:.3f}",
            f"{row.distance.mean:.3f}",
        ]
        for row in result.rows
    ]
    return [headings, *rows]


def _headings(result: QualityResult) -> list[str]:
    return ["PSNR, dB", "SSIM", "L∞, of 255", *["LPIPS"] * result.bench.lpips]


def _quality_cells(result: QualityResult, row: QualityRow) -> list[str]:
    """The cells under these headings."""
    spreads = [(row.psnr, ".1f"), (row.ssim, ".3f"), (row.linf, ".1f"), *[(row.lpips, ".4f")] * result.bench.lpips]
    return ["" if spread is None else format(spread, digits) for spread, digits in spreads]


def _activated(row: QualityRow) -> str:
    return "" if row.recipe == PASSIVE else f"{row.activated:,} of {row.photos:,}"


def _quality(result: QualityResult) -> Table:
    """Each recipe at its own budget, and the published figures."""
    ours = [
        [*_first_cells(row), _activated(row), *_quality_cells(result, row), f"{row.seconds_per_photo:.2f}"]
        for row in result.rows
        if row.own_budget and row.recipe != PASSIVE
    ]
    known = next(row for row in TABLE if row.recipe == "paper" and row.activation_ms)
    published = ["SSCD", known.index, known.recipe, "JND with alpha 3", "10,000"]
    published += [f"{QUALITY['psnr']:.1f}", f"{QUALITY['ssim']:.2f}", f"{QUALITY['linf']:.1f}"]
    assert known.activation_ms is not None
    return Table(
        name="quality",
        caption="The activated files as written: mean and standard deviation. The row named SSCD is as published "
        "(Fernandez et al., 2023), with the same alpha for all photos; here each photo has the same PSNR.",
        headings=[*_FIRST_HEADINGS, "activated", *_headings(result), "s per photo"],
        rows=[*ours, [*published, *[""] * result.bench.lpips, f"{known.activation_ms / 1000:.2f}"]],
        groups=[len(ours)],
    )


def _budgets(result: QualityResult) -> Table:
    """Each recipe with each budget, and the paper's two photos."""
    ours = [
        [*_first_cells(row), _activated(row), *_quality_cells(result, row), _recall(row)]
        for codebook_result in result.codebook_results
        for row in (each.row for each in codebook_result.budgets)
    ]
    published = [
        ["SSCD", "IVF4096,PQ8x8", "paper", each.budget, "1", f"{each.psnr:.1f}", f"{each.ssim:.2f}", f"{each.linf:g}"]
        for each in BUDGETS
    ]
    return Table(
        name="budgets",
        caption="Comparison of budgets: files as written, and recall at rank 1, mean of the fourteen edits. With the "
        "L∞ budget nearly all pixels change by the full bound; 8-bit files hold whole steps, so that it cannot meet "
        "every PSNR. Rows named SSCD are as published, of one photo.",
        headings=[*_FIRST_HEADINGS, "activated", *_headings(result), "recall, 95 % interval"],
        rows=[*ours, *([*row, *[""] * (1 + result.bench.lpips)] for row in published)],
        groups=[len(ours)],
    )


def _first_cells(row: QualityRow) -> list[str]:
    return [Path(row.extractor).name, row.spec, row.recipe, str(row.budget)]


def _recall(row: QualityRow) -> str:
    return f"{row.recall:.3f} ({row.interval.low:.3f}–{row.interval.high:.3f})"


def _trade_off(result: QualityResult) -> Table:
    """Quality and recall at every strength."""
    rows: list[list[str]] = []
    groups = []
    for codebook_result in result.codebook_results:
        releases = codebook_result.strengths
        passive = releases[0].row
        for recipe in dict.fromkeys(each.row.recipe for each in releases):
            groups.append(len(rows))
            rows += [_strength(result, each.row, passive) for each in releases if each.row.recipe == recipe]
    groups.append(len(rows))
    for psnr, gain in AVERAGE_PRECISION_GAIN.items():
        rows.append(["SSCD", "paper", f"{psnr:.1f}", *[""] * (5 + result.bench.lpips), f"×{gain:.1f}", ""])
    headings = ["network", "recipe", *_headings(result), "activated"]
    headings += ["recall, 95 % interval", "µAP", "µAP ÷ passive", "distance"]
    return Table(
        name="trade-off",
        caption="By strength: recall at rank 1, mean of the fourteen edits; µAP over the queries of all edits, and "
        "divided by that of passive; distance of the unedited files to their codes. Rows named SSCD are as published, "
        "with the random edit alone and with negative queries.",
        headings=headings,
        rows=rows,
        groups=groups,
    )


def _strength(result: QualityResult, row: QualityRow, passive: QualityRow) -> list[str]:
    gain = row.average_precision / passive.average_precision if passive.average_precision else None
    return [
        Path(row.extractor).name,
        row.release,
        *_quality_cells(result, row),
        _activated(row),
        _recall(row),
        f"{row.average_precision:.3f}",
        "" if gain is None or row.recipe == PASSIVE else f"×{gain:.2f}",
        f"{row.distance.mean:.3f}",
    ]


def _lines(result: QualityResult) -> Iterator[list[object]]:
    """A row for each photo and release."""
    for codebook_result in result.codebook_results:
        for release in codebook_result.releases:
            for line in release.photos:
                quality = [""] * 3
                if line.quality is not None:
                    quality = [f"{line.quality.psnr:.3f}", f"{line.quality.ssim:.5f}", f"{line.quality.linf:g}"]
                lpips = "" if line.lpips is None else f"{line.lpips:.5f}"
                distance = "" if line.distance is None else f"{line.distance:.5f}"
                found = "" if line.copies_found is None else line.copies_found
                about = [codebook_result.run.codebook.name, release.row.release, line.photo, line.state]
                yield [*about, *quality, lpips, distance, found]
