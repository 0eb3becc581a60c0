"""Figures as SVG and PNG, in one quiet look. The same numbers give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import cycle

from homing._drawing import check_drawing
from homing.evaluation.results.document import Figure

GREY, STRONG = "#858c96", "#1f5fa8"
_OTHERS = ("#d55e00", "#009e73", "#b0559c", "#c79a00", "#56b4e9")  # after Okabe and Ito: told apart by all eyes
_INK, _LINE = "#3c4450", "#e3e6ea"
_LOOK = {
    "font.size": 10,
    "text.color": _INK,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.labelcolor": _INK,
    "axes.edgecolor": _INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.prop_cycle": f"cycler('color', {[STRONG, *_OTHERS]})",
    "grid.color": _LINE,
    "grid.linewidth": 0.6,
    **{
        f"{axis}tick.{name}": value
        for axis in "xy"
        for name, value in {"color": _INK, "major.width": 0.6, "minor.width": 0.4}.items()
    },
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "homing",  # or ids would be drawn by lot
}


@dataclass(frozen=True)
class Drawing:
    """A figure, drawn."""

    svg: str
    png: bytes


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name: passive is grey; activated, or the paper's recipe, is strong; the others follow."""
    strong = next((name for name in names if name in ("activated", "paper")), None)
    known, others = {"passive": GREY, strong: STRONG}, cycle(_OTHERS)
    return {name: known.get(name) or next(others) for name in names}


def draw(figure: Figure) -> Drawing:
    """Draw a figure once, for both."""
    check_drawing("bench")
    import matplotlib.figure
    import matplotlib.style

    with matplotlib.style.context(["default", _LOOK]):  # and not in the look of somebody's matplotlibrc
        canvas = matplotlib.figure.Figure(figsize=figure.size, layout="constrained")
        figure.draw(canvas)
        svg, png = BytesIO(), BytesIO()
        canvas.savefig(svg, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
        canvas.savefig(png, format="png", metadata={"Software": None})
    text = svg.getvalue().decode()
    # Without the document type, whose address some readers would load from the network.
    return Drawing('<?xml version="1.0" encoding="utf-8"?>\n' + text[text.index("<svg") :], png.getvalue())
