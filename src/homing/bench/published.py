"""Published figures of the paper, for comparison: those in paper.toml."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from homing.bench.scores import Spread

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAPER_INDEX = "IVF4096,PQ8x8"  # the index of most published figures


@cache
def published() -> dict[str, Any]:
    """The paper's figures by name; the recall of a row is by edit."""
    figures: dict[str, Any] = tomllib.loads(files("homing.bench").joinpath("paper.toml").read_text(encoding="utf-8"))
    for row in (*figures["table"], *figures["watermarks"]):
        row["recall"] = dict(zip(figures["edits"], row["recall"], strict=True))
    figures["quality"] = {name: Spread(*pair) for name, pair in figures["quality"].items()}
    return figures


def published_gain(index: str, probes: int, recipe: str) -> tuple[float, float] | None:
    """The paper's mean recall for this index, passive and with a recipe, if it reports both.

    In the table of indexes, those with cells have one probe.
    """
    rows = [row for row in published()["table"] if row["probes"] == probes]
    if probes == 1 or not index.startswith("IVF"):
        rows += published()["indexes"]
    means = {row["recipe"]: row["mean"] for row in rows if row["index"] == index}
    return (means["passive"], means[recipe]) if recipe in means else None


def published_detection(index: str, probes: int | str, recipe: str, edits: Sequence[str]) -> str:
    """The paper's µAP with this index, or its factor over passive, if it reports it for these edits."""
    if list(edits) != ["random"] or probes == "exact" or (index.startswith("IVF") and probes != 1):
        return ""
    if (index, recipe) == (PAPER_INDEX, "paper"):
        return f"×{published()['average_precision_gain'][0]['gain']:.1f}"
    same = [row for row in published()["indexes"] if (row["index"], row["recipe"]) == (index, recipe)]
    return f"{same[0]['average_precision']:.2f}" if same else ""
