"""Figures as SVG and PNG, in one style; reproducible byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import cycle
from typing import TYPE_CHECKING

from homing._imports import load_extra
from homing.bench.tables import STEM

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

GRAY, ACCENT = "#858c96", "#1f5fa8"
# After Okabe and Ito: distinguishable with color blindness.
_OTHERS = ("#d55e00", "#009e73", "#b0559c", "#c79a00", "#56b4e9")
PALETTE = (ACCENT, *_OTHERS, GRAY)
INK, _LINE = "#3c4450", "#e3e6ea"
_STYLE = {
    "font.size": 10,
    "text.color": INK,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.prop_cycle": f"cycler('color', {[ACCENT, *_OTHERS]})",
    "grid.color": _LINE,
    "grid.linewidth": 0.6,
    **{
        f"{axis}tick.{name}": value
        for axis in "xy"
        for name, value in {"color": INK, "major.width": 0.6, "minor.width": 0.4}.items()
    },
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "homing",  # ids would be random otherwise
}


Share = tuple[float, float, float]  # with both ends of its interval


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure: `draw` is called with an empty matplotlib figure."""

    name: str  # of its files, without a suffix
    caption: str
    draw: Callable[[matplotlib.figure.Figure], None]
    size: tuple[float, float] = (6.4, 3.8)  # inches

    def __post_init__(self) -> None:
        assert STEM.fullmatch(self.name), self.name


@dataclass(frozen=True)
class Drawing:
    """A rendered figure."""

    svg: str
    png: bytes


def colors(names: Sequence[str]) -> dict[str, str]:
    """A color for each name: gray for passive, the accent color for 'activated' or 'paper', others in order."""
    strong = next((name for name in names if name in ("activated", "paper")), None)
    known, others = {"passive": GRAY, strong: ACCENT}, cycle(_OTHERS)
    return {name: known.get(name) or next(others) for name in names}


def bars(axes: matplotlib.axes.Axes, shares: Mapping[str, Sequence[Share]]) -> dict[str, list[float]]:
    """Draw grouped bars: for each name one share per group, with both ends of its interval.

    Returns the positions of the bars of each name.
    """
    color, width = colors(list(shares)), 0.8 / len(shares)
    bar_positions = {}
    for shift, (name, measured) in enumerate(shares.items()):
        bar_positions[name] = [group + width * (shift + 0.5) - 0.4 for group in range(len(measured))]
        heights = [share for share, _, _ in measured]
        reach = [[share - low for share, low, _ in measured], [high - share for share, _, high in measured]]
        axes.bar(bar_positions[name], heights, width, color=color[name], label=name)
        axes.errorbar(bar_positions[name], heights, yerr=reach, fmt="none", ecolor=INK, elinewidth=0.7)
    axes.grid(visible=False, axis="x")
    return bar_positions


def share_bars(
    name: str, caption: str, labels: Sequence[str], shares: Mapping[str, Sequence[Share]], ylabel: str
) -> Figure:
    """A figure of grouped bars: for each name a share per label, with both ends of its interval."""

    def draw(canvas: matplotlib.figure.Figure) -> None:
        axes = canvas.subplots()
        bars(axes, shares)
        axes.set_xticks(range(len(labels)), labels, rotation=40, ha="right")
        axes.set(ylim=(0, 1.02), ylabel=ylabel)
        axes.legend(ncols=len(shares), loc="lower left", bbox_to_anchor=(0, 1))

    return Figure(name=name, caption=caption, draw=draw, size=(8.0, 3.8))


def numbered_name(name: str, number: int) -> str:
    """The name of a figure; from the second of its kind on, with its number."""
    return name if number == 1 else f"{name}-{number}"


def draw(figure: Figure) -> Drawing:
    """Render a figure as SVG and PNG."""
    load_extra("matplotlib", extra="bench")
    import matplotlib.figure
    import matplotlib.style

    with matplotlib.style.context(["default", _STYLE]):  # independent of the user's matplotlibrc
        canvas = matplotlib.figure.Figure(figsize=figure.size, layout="constrained")
        figure.draw(canvas)
        svg, png = BytesIO(), BytesIO()
        canvas.savefig(svg, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
        canvas.savefig(png, format="png", metadata={"Software": None})
    text = svg.getvalue().decode()
    # Without the document type: some readers would load its address from the network.
    return Drawing('<?xml version="1.0" encoding="utf-8"?>\n' + text[text.index("<svg") :], png.getvalue())
