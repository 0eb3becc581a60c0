"""What the quality bench found, told: quality beside the paper's, budget by budget, and what each strength brings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from homing.evaluation.benches.quality import QualityResult, Row
from homing.evaluation.benches.quality_figures import figures, pictures
from homing.evaluation.protocol.setting import PASSIVE
from homing.evaluation.protocol.told import INTERVALS, numbers, setting_line
from homing.evaluation.published import AVERAGE_PRECISION_GAIN, BUDGETS, QUALITY, TABLE
from homing.evaluation.results import Lines, Results, Table

_ABOUT = ["network", "index", "recipe", "budget"]


def results(result: QualityResult, command: str) -> Results:
    """All there is to say."""
    subjects = [examined.subject for examined in result.examined]
    return Results(
        title="What activation costs the eye",
        setting=f"The files as written, and copies of them searched for: {setting_line(subjects[0])}",
        command=command,
        numbers=numbers(
            subjects,
            rows=[asdict(row) for row in result.rows],
            settings={
                "recipes": list(result.bench.recipes),
                "strengths": [str(budget) for budget in result.bench.strengths()],
                "budgets": [str(budget) for budget in result.bench.compared()],
                "probes": result.bench.probes,
                "spread": "standard deviation over the photos",
                "intervals": INTERVALS,
            },
            seconds=result.seconds,
        ),
        tables=[_quality(result), _trade_off(result), _budgets(result)],
        figures=list(figures(result)),
        pictures=list(pictures(result)),
        lines=Lines(
            name="photos",
            what="every photo and release",
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
                "copies_home",
            ],
            rows=_lines(result),
        ),
    )


def shown(result: QualityResult) -> list[list[str]]:
    """The trade-off, for a terminal."""
    headings = ["codebook", "release", *_headings(result), "activated", "recall", "µAP", "distance"]
    rows = [
        [
            row.codebook,
            row.release,
            *_eye(result, row),
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


def _eye(result: QualityResult, row: Row) -> list[str]:
    """What the eye may notice, under these headings."""
    spreads = [(row.psnr, ".1f"), (row.ssim, ".3f"), (row.linf, ".1f"), *[(row.lpips, ".4f")] * result.bench.lpips]
    return ["" if spread is None else format(spread, digits) for spread, digits in spreads]


def _activated(row: Row) -> str:
    return "" if row.recipe == PASSIVE else f"{row.activated:,} of {row.photos:,}"


def _quality(result: QualityResult) -> Table:
    """Each recipe at its own budget, and the paper's figures."""
    ours = [
        [*_about(row), _activated(row), *_eye(result, row), f"{row.seconds_per_photo:.2f}"]
        for row in result.rows
        if row.own and row.recipe != PASSIVE
    ]
    known = next(row for row in TABLE if row.recipe == "paper" and row.activation_ms)
    published = ["SSCD", known.index, known.recipe, "JND with alpha 3", "10,000"]
    published += [f"{QUALITY['psnr']:.1f}", f"{QUALITY['ssim']:.2f}", f"{QUALITY['linf']:.1f}"]
    assert known.activation_ms is not None
    return Table(
        name="quality",
        caption="The activated files as written: mean and standard deviation. The row named SSCD is as published "
        "(Fernandez et al., 2023): there one alpha holds for all photos, here each photo is brought to the same PSNR.",
        headings=[*_ABOUT, "activated", *_headings(result), "s per photo"],
        rows=[*ours, [*published, *[""] * result.bench.lpips, f"{known.activation_ms / 1000:.2f}"]],
        groups=[len(ours)],
    )


def _budgets(result: QualityResult) -> Table:
    """Each recipe under each budget, and the paper's two photos."""
    ours = [
        [*_about(row), _activated(row), *_eye(result, row), _recall(row)]
        for examined in result.examined
        for row in (each.row for each in examined.budgets)
    ]
    published = [
        ["SSCD", "IVF4096,PQ8x8", "paper", each.budget, "1", f"{each.psnr:.1f}", f"{each.ssim:.2f}", f"{each.linf:g}"]
        for each in BUDGETS
    ]
    return Table(
        name="budgets",
        caption="Budgets side by side: files as written, and recall at rank 1, mean of the fourteen edits. Files of 8 "
        "bits hold whole steps, so that L∞, where nearly all pixels move by as much as they may, cannot meet every "
        "PSNR. Rows named SSCD are as published, of one photo.",
        headings=[*_ABOUT, "activated", *_headings(result), "recall, 95 % interval"],
        rows=[*ours, *([*row, *[""] * (1 + result.bench.lpips)] for row in published)],
        groups=[len(ours)],
    )


def _about(row: Row) -> list[str]:
    return [Path(row.extractor).name, row.spec, row.recipe, str(row.budget)]


def _recall(row: Row) -> str:
    return f"{row.recall:.3f} ({row.interval.low:.3f}–{row.interval.high:.3f})"


def _trade_off(result: QualityResult) -> Table:
    """Every strength: what it costs and what it brings."""
    rows: list[list[str]] = []
    groups = []
    for examined in result.examined:
        some = examined.strengths
        passive = some[0].row
        for recipe in dict.fromkeys(each.row.recipe for each in some):
            groups.append(len(rows))
            rows += [_strength(result, each.row, passive) for each in some if each.row.recipe == recipe]
    groups.append(len(rows))
    for psnr, gain in AVERAGE_PRECISION_GAIN.items():
        rows.append(["SSCD", "paper", f"{psnr:.1f}", *[""] * (5 + result.bench.lpips), f"×{gain:.1f}", ""])
    headings = ["network", "recipe", *_headings(result), "activated"]
    headings += ["recall, 95 % interval", "µAP", "of passive", "distance"]
    return Table(
        name="trade-off",
        caption="From gentle to strong: recall at rank 1, mean of the fourteen edits; µAP over the queries of all of "
        "them, and how many times that of passive; distance of the files, unedited, to their codes. Rows named SSCD "
        "are as published, with the random edit alone and queries that have no reference.",
        headings=headings,
        rows=rows,
        groups=groups,
    )


def _strength(result: QualityResult, row: Row, passive: Row) -> list[str]:
    gain = row.average_precision / passive.average_precision if passive.average_precision else None
    return [
        Path(row.extractor).name,
        row.release,
        *_eye(result, row),
        _activated(row),
        _recall(row),
        f"{row.average_precision:.3f}",
        "" if gain is None or row.recipe == PASSIVE else f"×{gain:.2f}",
        f"{row.distance.mean:.3f}",
    ]


def _lines(result: QualityResult) -> Iterator[list[object]]:
    """A line for each photo and release; nothing stands where there is no number."""
    for examined in result.examined:
        for measured in examined.measured:
            for line in measured.lines:
                quality = [""] * 3
                if line.quality is not None:
                    quality = [f"{line.quality.psnr:.3f}", f"{line.quality.ssim:.5f}", f"{line.quality.linf:g}"]
                lpips = "" if line.lpips is None else f"{line.lpips:.5f}"
                distance = "" if line.distance is None else f"{line.distance:.5f}"
                home = "" if line.home is None else line.home
                about = [examined.subject.codebook.name, measured.row.release, line.photo, line.state]
                yield [*about, *quality, lpips, distance, home]
