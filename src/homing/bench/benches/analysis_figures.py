"""The figures of the analysis bench: the paper's histogram of distances, and cell failures with the recall."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from homing.bench.benches.analysis import LABELS, AnalysisRow, CodebookAnalysis
from homing.bench.protocol.report import numbered_name
from homing.bench.published import IVF_FAILURE
from homing.bench.results import Figure, bars
from homing.bench.scores import Interval

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

_BINS = 60


def figures(codebook_results: Sequence[CodebookAnalysis]) -> Iterator[Figure]:
    """Two figures for each codebook."""
    for number, each in enumerate(codebook_results, 1):
        yield _histograms(each, number)
        yield _bars(each, number)


def _histograms(codebook_result: CodebookAnalysis, number: int) -> Figure:
    """The paper's histogram of distances: a panel for each recipe."""
    recipes = [each.row.recipe for each in codebook_result.recipe_results]
    groups = [
        {
            "released x": each.squared[:, LABELS.index("identity")],
            "edited copies x̂": each.squared.ravel(),
            "unrelated y": codebook_result.unrelated,
        }
        for each in codebook_result.recipe_results
    ]
    bins = np.linspace(0, max(float(values.max()) for group in groups for values in group.values()), _BINS)

    def draw(canvas: matplotlib.figure.Figure) -> None:
        panels = canvas.subplots(len(recipes), sharex=True, squeeze=False)[:, 0]
        for axes, recipe, group in zip(panels, recipes, groups, strict=True):
            _panel(axes, group, bins)
            axes.set_title(recipe)
        panels[0].legend(ncols=3, loc="lower left", bbox_to_anchor=(0.16, 1), borderaxespad=0)
        panels[-1].set_xlim(left=0)
        panels[-1].set_xlabel("squared distance to the code of the original, ‖· − q(x_o)‖²")

    return Figure(
        name=numbered_name("distances", number),
        caption=f"Squared distances to the code of the original, {codebook_result.run.codebook.name}: of released "
        "files, of their edited copies, and of unrelated photos. Each histogram has the same area; lines are means.",
        draw=draw,
        size=(6.4, 1.2 + 1.6 * len(recipes)),
    )


def _panel(axes: matplotlib.axes.Axes, group: dict[str, np.ndarray], bins: np.ndarray) -> None:
    for i, (name, values) in enumerate(group.items()):
        color = f"C{i}"
        axes.hist(values, bins=bins.tolist(), density=True, histtype="stepfilled", alpha=0.35, color=color, label=name)
        axes.hist(values, bins=bins.tolist(), density=True, histtype="step", color=color, linewidth=1)
        axes.axvline(float(values.mean()), color=color, linestyle=(0, (4, 2)), linewidth=1.2)
    axes.set_yticks([])
    axes.set_ylabel("density")


def _bars(codebook_result: CodebookAnalysis, number: int) -> Figure:
    """By edit: the share of copies in another cell and, below, the recall."""
    rows = [each.row for each in codebook_result.recipe_results]
    with_cells = rows[0].failure is not None

    def draw(canvas: matplotlib.figure.Figure) -> None:
        panels = canvas.subplots(1 + with_cells, sharex=True, squeeze=False)[:, 0]
        if with_cells:
            _failures(panels[0], rows)
            panels[0].set_ylabel("p_f, in another cell")
        _recalls(panels[-1], rows)
        panels[-1].set_ylabel("recall, one probe")
        panels[-1].set_xticks(range(len(LABELS)), LABELS, rotation=40, ha="right")
        for axes in panels:
            axes.set_ylim(0, 1.04)
        panels[0].legend(ncols=len(rows) + 1, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0)

    name = codebook_result.run.codebook.name
    cells = f"Copies in another cell than their original and, below, the recall at rank 1 with one probe, {name}; "
    cells += "95 % intervals. Diamonds: published p_f (SSCD). Black lines: the bound 1 − p_f of the recall."
    return Figure(
        name=numbered_name("cells", number),
        caption=cells if with_cells else f"Recall at rank 1, {name}, which has no cells; 95 % intervals.",
        draw=draw,
        size=(8.0, 3.8 + 1.8 * with_cells),
    )


def _failures(axes: matplotlib.axes.Axes, rows: Sequence[AnalysisRow]) -> None:
    bar_positions = bars(axes, {row.recipe: _shares(row.failure or {}, row.failure_interval or {}) for row in rows})
    random = LABELS.index("random")
    theirs = {bar_positions[row.recipe][random]: IVF_FAILURE[row.recipe] for row in rows if row.recipe in IVF_FAILURE}
    heights = list(theirs.values())
    axes.plot(list(theirs), heights, "D", color="#3c4450", markeredgecolor="white", label="SSCD, published")


def _recalls(axes: matplotlib.axes.Axes, rows: Sequence[AnalysisRow]) -> None:
    bar_positions = bars(axes, {row.recipe: _shares(row.recall, row.interval) for row in rows})
    for row in rows:
        if row.failure is not None:
            middles, reach = np.array(bar_positions[row.recipe]), 0.4 / len(rows)
            axes.hlines([1 - share for share in row.failure.values()], middles - reach, middles + reach, color="black")


def _shares(by_edit: Mapping[str, float], intervals: Mapping[str, Interval]) -> list[tuple[float, float, float]]:
    """Each share with both ends of its interval."""
    return [(share, *intervals[edit]) for edit, share in by_edit.items()]
