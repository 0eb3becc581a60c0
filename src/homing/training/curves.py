"""Plot the curves of a training run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO


@dataclass(frozen=True)
class CurvePoint:
    """One point of the curves of a run."""

    step: int
    loss: float  # mean since the previous point
    views_per_second: float
    score: float  # of held-out photos
    seconds: float  # since the start, without scoring held-out photos


def draw_curves(curve: Sequence[CurvePoint], metric: str) -> bytes:
    """Loss and held-out score over the steps, as a PNG; `metric` says what the score is."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    steps = [point.step for point in curve]
    for axes, name, label in zip(figure.subplots(1, 2), ("loss", "score"), ("loss", f"held-out {metric}"), strict=True):
        axes.plot(steps, [getattr(point, name) for point in curve], color="#1f5fa8", marker="o", markersize=3)
        axes.set_xlabel("step")
        axes.set_title(label, loc="left")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    file = BytesIO()
    figure.savefig(file, format="png", dpi=120)
    return file.getvalue()
