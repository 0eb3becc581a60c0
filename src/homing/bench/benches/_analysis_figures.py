"""The figures of the analysis bench: the paper's histogram of distances, and cell failures with the recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from homing.bench.figures import INK, Figure, bars
from homing.bench.runs import LABELS, recall_shares
from homing.bench.scores import published
from homing.bench.tables import Row

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

    from homing.bench.benches.analysis import AnalyzedRecipe


def histograms_figure(name: str, recipes: Sequence[AnalyzedRecipe]) -> Figure:
    """The paper's histogram of distances: a panel for each recipe."""
    groups = {
        each.row["recipe"]: {
            "released x": each.squared[:, LABELS.index("identity")],
            "edited copies x̂": each.squared.ravel(),
            "unrelated y": each.unrelated,
        }
        for each in recipes
    }
    last = max(float(values.max()) for group in groups.values() for values in group.values())
    bins = np.linspace(0, last, 60)

    def draw(canvas: matplotlib.figure.Figure) -> None:
        panels = canvas.subplots(len(groups), sharex=True, squeeze=False)[:, 0]
        for axes, (recipe, group) in zip(panels, groups.items(), strict=True):
            _histogram(axes, group, bins)
            axes.set_title(recipe)
        panels[0].legend(ncols=3, loc="lower left", bbox_to_anchor=(0.16, 1), borderaxespad=0)
        panels[-1].set(xlim=(0, None), xlabel="squared distance to the code of the original, ‖· − q(x_o)‖²")

    return Figure(
        name=name,
        caption=f"Squared distances to the code of the original, {recipes[0].row['codebook']}: of released "
        "files, of their edited copies, and of unrelated photos. Each histogram has the same area; lines are means.",
        draw=draw,
        size=(6.4, 1.2 + 1.6 * len(groups)),
    )


def _histogram(axes: matplotlib.axes.Axes, group: dict[str, np.ndarray], bins: np.ndarray) -> None:
    for i, (name, values) in enumerate(group.items()):
        color = f"C{i}"
        axes.hist(values, bins=bins.tolist(), density=True, histtype="stepfilled", alpha=0.35, color=color, label=name)
        axes.hist(values, bins=bins.tolist(), density=True, histtype="step", color=color, linewidth=1)
        axes.axvline(float(values.mean()), color=color, linestyle=(0, (4, 2)), linewidth=1.2)
    axes.set(yticks=[], ylabel="density")


def failures_figure(name: str, recipes: Sequence[AnalyzedRecipe]) -> Figure:
    """By edit: the share of copies in another cell and, below, the recall."""
    rows = [each.row for each in recipes]
    has_cells = rows[0]["failure"] is not None

    def draw(canvas: matplotlib.figure.Figure) -> None:
        panels = canvas.subplots(1 + has_cells, sharex=True, squeeze=False)[:, 0]
        if has_cells:
            _failures(panels[0], rows)
            panels[0].set_ylabel("p_f, in another cell")
        _recalls(panels[-1], rows)
        panels[-1].set_ylabel("recall, one probe")
        panels[-1].set_xticks(range(len(LABELS)), LABELS, rotation=40, ha="right")
        for axes in panels:
            axes.set_ylim(0, 1.04)
        panels[0].legend(ncols=len(rows) + 1, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0)

    codebook = rows[0]["codebook"]
    caption = (
        f"Copies in another cell than their original and, below, the recall at rank 1 with one probe, {codebook}; "
    )
    caption += "95 % intervals. Diamonds: published p_f (SSCD). Black lines: the bound 1 − p_f of the recall."
    return Figure(
        name=name,
        caption=caption if has_cells else f"Recall at rank 1, {codebook}, which has no cells; 95 % intervals.",
        draw=draw,
        size=(8.0, 3.8 + 1.8 * has_cells),
    )


def _failures(axes: matplotlib.axes.Axes, rows: Sequence[Row]) -> None:
    known = published()["failure"]
    shares = {
        row["recipe"]: [(share, *row["failure_interval"][label]) for label, share in row["failure"].items()]
        for row in rows
    }
    bar_positions, random = bars(axes, shares), LABELS.index("random")
    theirs = {bar_positions[recipe][random]: known[recipe] for recipe in shares if recipe in known}
    heights = list(theirs.values())
    axes.plot(list(theirs), heights, "D", color=INK, markeredgecolor="white", label="SSCD, published")


def _recalls(axes: matplotlib.axes.Axes, rows: Sequence[Row]) -> None:
    bar_positions = bars(axes, {row["recipe"]: recall_shares(row) for row in rows})
    for row in rows:
        if row["failure"] is not None:
            middles, reach = np.array(bar_positions[row["recipe"]]), 0.4 / len(rows)
            bounds = [1 - share for share in row["failure"].values()]
            axes.hlines(bounds, middles - reach, middles + reach, color="black")
