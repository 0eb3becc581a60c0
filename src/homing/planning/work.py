"""How long the stages take: those that many machines share, and those that one does."""

from __future__ import annotations

from collections.abc import Sequence

from homing.activation import RECIPES, Recipe
from homing.planning.answer import Basis, Stage
from homing.planning.question import Question
from homing.planning.rates import Rate, below, measured


def stages(question: Question) -> list[Stage]:
    """All stages in order, each for all photos on one machine."""
    rates = measured()
    shared = [_activate(question)] if question.activates else [_decode(question), _describe(question)]
    kind = "activated" if question.activates else "passive"
    if question.engine == "lance":
        record, built, many = (
            rates[f"record.lance.{kind}"],
            rates["search.lance.kept"],
            rates["search.lance.references"],
        )
        return [
            *shared,
            # Many write at once, but their commits come one after the other.
            _stage(question, "record", record.seconds, [record], basis="extrapolated", spreads=False),
            _stage(question, "index", built.numbers[-1] / many.numbers[-1], [built], spreads=False),
        ]
    return [
        *shared,
        _stage(question, "record", rates[f"record.{kind}"].seconds, [rates[f"record.{kind}"]], spreads=False),
        _stage(question, "index", rates["index.build"].seconds, [rates["index.build"]], spreads=False),
    ]


def _activate(question: Question) -> Stage:
    """From file to file: as measured for the recipe, and what larger photos add, which is the work of cores."""
    known = below(f"activate.{question.gpu}")
    recipe = RECIPES[question.recipe]
    more = _pixels() * question.larger / question.machine_cores
    seconds = _by_recipe(recipe, known) * _cores(question) + more
    as_measured = recipe.name in known and not question.larger and _cores(question) == 1
    sources = [*known.values(), *(below("size").values() if question.larger else ())]
    return _stage(question, "activate", seconds, sources, basis="measured" if as_measured else "extrapolated")


def _by_recipe(recipe: Recipe, known: dict[str, Rate]) -> float:
    """Seconds of a photo, as measured, or on the line through the recipes next to it by passes of the network."""
    if recipe.name in known:
        return known[recipe.name].seconds
    return _on_line(_passes(recipe), sorted((_passes(RECIPES[name]), rate.seconds) for name, rate in known.items()))


def _passes(recipe: Recipe) -> int:
    return recipe.steps * recipe.views


def _on_line(x: float, points: Sequence[tuple[float, float]]) -> float:
    """The value at x of the line through the points, the first and last pieces of which go on; never below 0."""
    place = sum(x > each for each, _ in points)
    place = min(max(place, 1), len(points) - 1)
    (left, low), (right, high) = points[place - 1 : place + 1]
    return max(0.0, low + (high - low) * (x - left) / (right - left))


def _pixels() -> float:
    """Core-seconds that a megapixel more takes to be decoded, moved, written and verified."""
    rates = measured()
    small, large = rates["size.megapixels"].numbers
    fast, slow = rates["size.activate"].numbers
    moved = rates["machines.none"].number * (slow - fast) / 1000 / (large - small)
    return moved + rates["add.decode"].seconds / rates["size.measured"].number


def _decode(question: Question) -> Stage:
    rate, size = measured()["add.decode"], measured()["size.measured"].number
    seconds = rate.seconds * max(1.0, question.megapixels / size) / question.machine_cores
    basis: Basis = "extrapolated" if question.larger or question.machine_cores > 1 else "measured"
    return _stage(question, "decode", seconds, [rate], basis=basis)


def _describe(question: Question) -> Stage:
    """The network looks at photos of one size, whatever theirs."""
    rate = measured()[f"add.{question.gpu}"]
    as_measured = question.gpu == "none" and _cores(question) == 1
    seconds = rate.seconds * _cores(question)
    return _stage(question, "describe", seconds, [rate], basis="measured" if as_measured else "extrapolated")


def _cores(question: Question) -> float:
    """How many times as long as where it was measured, on a machine with more cores or fewer."""
    return question.measured_cores / question.machine_cores


def _stage(
    question: Question,
    name: str,
    seconds: float,
    sources: Sequence[Rate],
    *,
    basis: Basis = "measured",
    spreads: bool = True,
) -> Stage:
    told = sorted({f"{rate.command} on {rate.hardware}" for rate in sources})
    notes = sorted({rate.note for rate in sources if rate.note})
    if name in question.rates:
        seconds, basis, told, notes = 1 / question.rates[name], "yours", [], []
    hours = question.photos * seconds / 3600
    return Stage(name=name, seconds=seconds, hours=hours, spreads=spreads, basis=basis, sources=told, notes=notes)
