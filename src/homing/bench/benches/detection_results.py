"""The report of the detection bench: a table with published figures, the curves, and a CSV row for each search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from homing.bench.benches.detection import NEAREST, ROUNDS, DetectionResult, DetectionRow, DetectionSearch
from homing.bench.protocol.config import PASSIVE
from homing.bench.protocol.references import Probes
from homing.bench.protocol.report import (
    common_numbers,
    describe_probes,
    format_probes,
    nearest_name_and_distance,
    summary_line,
)
from homing.bench.published import AVERAGE_PRECISION_GAIN, INDEXES, QUALITY
from homing.bench.results import CsvTable, Figure, Results, Table, colors
from homing.bench.scores import PrecisionRecall

if TYPE_CHECKING:
    import matplotlib.figure

Dashes = str | tuple[float, tuple[float, ...]]  # matplotlib line styles: an offset, then lengths on and off

_POINTS = 500
_EXACT: Dashes = (0, (4, 2))
_OTHERS: Sequence[Dashes] = ("-", (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))


def results(result: DetectionResult, command: str) -> Results:
    """The report."""
    run, edits = result.codebook_results[0].run, len(result.bench.edits)
    positives, negatives = len(run.originals) * edits, len(result.negatives.files) * edits
    return Results(
        title="Detection of copies among other photos",
        summary=f"Detection with {positives:,} positive and {negatives:,} negative queries: {summary_line(run)}",
        command=command,
        numbers=common_numbers(
            [each.run for each in result.codebook_results],
            rows=[asdict(row) for row in result.rows],
            settings={
                "negatives": len(result.negatives.files),
                "edits": result.bench.labels,
                "recipes": list(result.bench.recipes),
                "probes": list(result.bench.probes),
                "nearest": NEAREST,
                "max_false_match": list(result.bench.max_false_match),
                "intervals": f"95 %: a bootstrap over photos ({ROUNDS} rounds, seed 0), positive and negative ones "
                "drawn separately; of width 0 if all photos have the same result",
            },
            seconds=result.seconds,
            failures=result.negatives.failures,
        )
        | {"curve": [_curve(each) for codebook_result in result.codebook_results for each in codebook_result.searches]},
        tables=[_table(result)],
        figures=[_figure(result)],
        csv_table=CsvTable(
            headings=["codebook", "recipe", "probes", "kind", "photo", "edit", "found", "distance", "is_correct"],
            rows=_searches(result),
        ),
    )


def terminal_table(result: DetectionResult) -> list[list[str]]:
    """The table for a terminal."""
    headings = ["codebook", "probes", "recipe", "µAP", "95 %", *_rate_headings(result), "PSNR, dB"]
    return [headings, *([row.codebook, _probes(result, row), row.recipe, *_scores(row)] for row in result.rows)]


def published(row: DetectionRow, edits: Sequence[str]) -> str:
    """The paper's figure for such a row, of the random edit alone: its µAP, or its factor over passive."""
    if list(edits) != ["random"] or row.probes == "exact" or (row.spec.startswith("IVF") and row.probes != 1):
        return ""
    if (row.spec, row.recipe) == ("IVF4096,PQ8x8", "paper"):
        return f"×{AVERAGE_PRECISION_GAIN[QUALITY['psnr'].mean]:.1f}"
    same = [each for each in INDEXES if (each.index, each.recipe) == (row.spec, row.recipe)]
    return f"{same[0].average_precision:.2f}" if same else ""


def downsampled(curve: PrecisionRecall, points: int = _POINTS) -> PrecisionRecall:
    """At most this many points of a curve, equally spaced along it, with both ends."""
    if len(curve.thresholds) <= points:
        return curve
    arc_length = np.append(0, np.hypot(np.diff(curve.recall), np.diff(curve.precision)).cumsum())
    indices = np.unique(np.searchsorted(arc_length, np.linspace(0, arc_length[-1], points - 1)))
    indices = np.union1d(indices, len(arc_length) - 1)
    return PrecisionRecall(curve.thresholds[indices], curve.precision[indices], curve.recall[indices])


def _table(result: DetectionResult) -> Table:
    """The paper's table of indexes, with a row for each recipe."""
    rows = result.rows
    published_cells = [published(row, result.bench.labels) for row in rows]
    gains = [_gain(row, rows) for row in rows]
    lines = []
    for row, gain, paper in zip(rows, gains, published_cells, strict=True):
        index = "none" if row.probes == "exact" else row.spec
        precision, interval, *others = _scores(row)
        head = [Path(row.extractor).name, index, _probes(result, row), row.recipe, f"{precision} ({interval})"]
        lines.append(head + [gain] * any(gains) + [paper] * any(published_cells) + others)
    headings = ["network", "index", "probes", "recipe", "µAP (95 % interval)"]
    headings += ["gain"] * any(gains) + ["published"] * any(published_cells) + [*_rate_headings(result), "PSNR, dB"]
    group_keys = [(row.codebook, row.probes) for row in rows]
    return Table(
        name="table",
        caption=_caption(result, gained=any(gains), has_published=any(published_cells)),
        headings=headings,
        rows=lines,
        groups=[number for number in range(1, len(group_keys)) if group_keys[number] != group_keys[number - 1]],
    )


def _caption(result: DetectionResult, *, gained: bool, has_published: bool) -> str:
    negatives = len(result.negatives.files) * len(result.bench.edits)
    text = "Detection of copies: µAP, the area under precision and recall of all pairs of a query and one of its "
    text += f"{NEAREST} nearest references. Exact search is the upper bound."
    if gained:
        text += " Gain: the µAP divided by that of passive photos."
    if has_published:
        text += " Published: µAP or gain with SSCD (Fernandez et al., 2023), 10,000 positive and 40,000 negative "
        text += "queries among a million references."
    if result.bench.max_false_match:
        text += " Recall at a rate: the share of positive queries whose own photo is nearest, and nearer than the "
        text += "threshold at which this rate of the negative queries has a false match."
    if any(0 < rate < 1 / negatives for rate in result.bench.max_false_match):
        text += f" With {negatives:,} negative queries, a rate below {100 / negatives:.2g} % allows no false match."
    return text


def _rate_headings(result: DetectionResult) -> list[str]:
    return [f"recall at {100 * rate:g} % false matches" for rate in result.bench.max_false_match]


def _scores(row: DetectionRow) -> list[str]:
    low, high = row.interval
    recalls = [
        f"{point.recall:.3f} ({point.interval.low:.3f}–{point.interval.high:.3f})"
        for point in row.recall_at_false_matches
    ]
    psnr = "" if row.psnr is None else f"{row.psnr:.1f}"
    return [f"{row.average_precision:.3f}", f"{low:.3f}–{high:.3f}", *recalls, psnr]


def _gain(row: DetectionRow, rows: Sequence[DetectionRow]) -> str:
    """The µAP of a recipe divided by that of passive photos, if it was measured and is not 0."""
    for other in rows:
        same = (other.codebook, other.probes) == (row.codebook, row.probes)
        if same and other.recipe == PASSIVE != row.recipe and other.average_precision:
            return f"×{row.average_precision / other.average_precision:.2f}"
    return ""


def _curve(each: DetectionSearch) -> dict[str, object]:
    curve = downsampled(each.curve)
    numbers = {"recall": curve.recall, "precision": curve.precision, "threshold": curve.thresholds}
    return {
        **{name: getattr(each.row, name) for name in ("codebook", "recipe", "probes")},
        **{name: [round(float(value), 6) for value in values] for name, values in numbers.items()},
    }


def _probes(result: DetectionResult, row: DetectionRow) -> str:
    books = [codebook_result.run.codebook for codebook_result in result.codebook_results]
    return format_probes(row.probes, next(book.has_cells for book in books if book.name == row.codebook))


def _figure(result: DetectionResult) -> Figure:
    """Precision against recall for the first codebook: a color for each recipe, a line style for each probes."""
    found, cells = result.codebook_results[0].searches, result.codebook_results[0].run.codebook.has_cells
    color = colors(list(dict.fromkeys(each.row.recipe for each in found)))
    lines = [each for recipe in color for each in found if each.row.recipe == recipe]
    numbers = dict.fromkeys(each.row.probes for each in lines if each.row.probes != "exact")
    dashes: dict[Probes, Dashes] = {probes: _OTHERS[i % len(_OTHERS)] for i, probes in enumerate(numbers)}

    def draw(canvas: matplotlib.figure.Figure) -> None:
        axes = canvas.subplots()
        for each in lines:
            row, curve = each.row, downsampled(each.curve)
            axes.plot(
                [*(0 * curve.recall[:1]), *curve.recall],  # starts at recall 0, unless nothing was found
                [*curve.precision[:1], *curve.precision],
                color=color[row.recipe],
                linestyle=dashes.get(row.probes, _EXACT),
                label=f"{row.recipe}, {describe_probes(row.probes, cells)}: {row.average_precision:.3f}",
                clip_on=False,
            )
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="recall", ylabel="precision")
        columns = min(len(color), 2)
        canvas.legend(title="µAP", loc="outside lower left", ncols=columns, alignment="left", handlelength=2.8)

    return Figure(
        name="precision-recall",
        caption=f"Precision and recall at all thresholds, {lines[0].row.codebook}.",
        draw=draw,
        size=(5.4, 4.8),
    )


def _searches(result: DetectionResult) -> Iterator[list[object]]:
    """A row for each search."""
    for codebook_result in result.codebook_results:
        names = [original.source for original in codebook_result.run.originals]
        for each in codebook_result.searches:
            about = [each.row.codebook, each.row.recipe, each.row.probes]
            queries = [(source, label) for source in each.sources for label in result.bench.labels]
            for query, (pair, true_id) in enumerate(zip(queries, each.true_ids.tolist(), strict=True)):
                kind, is_correct = (
                    "negative" if true_id < 0 else "positive",
                    int(true_id == each.found.ids[query, 0] >= 0),
                )
                yield [*about, kind, *pair, *nearest_name_and_distance(each.found, query, names), is_correct]
