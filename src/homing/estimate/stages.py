"""Time of each stage: those that run on all machines, and those that run on one."""

from __future__ import annotations

from collections.abc import Sequence

from homing.activation import RECIPES, Recipe
from homing.estimate.rates import Rate, load_rates, rates_under
from homing.estimate.request import EstimateRequest
from homing.estimate.result import Basis, StageEstimate


def stages(request: EstimateRequest) -> list[StageEstimate]:
    """All stages in order, with the time for all photos on one machine."""
    rates = load_rates()
    shared = [_activate(request)] if request.activates else [_decode(request), _describe(request)]
    kind = "activated" if request.activates else "passive"
    if request.engine == "lance":
        record, built, many = (
            rates[f"record.lance.{kind}"],
            rates["search.lance.save"],
            rates["search.lance.references"],
        )
        return [
            *shared,
            # Writers run in parallel, but their commits are serialized.
            _stage(request, "record", record.seconds, [record], basis="extrapolated", parallel=False),
            _stage(request, "index", built.numbers[-1] / many.numbers[-1], [built], parallel=False),
        ]
    return [
        *shared,
        _stage(request, "record", rates[f"record.{kind}"].seconds, [rates[f"record.{kind}"]], parallel=False),
        _stage(request, "index", rates["index.build"].seconds, [rates["index.build"]], parallel=False),
    ]


def _activate(request: EstimateRequest) -> StageEstimate:
    """Activation from file to file: the rate of the recipe, plus CPU time for larger photos."""
    known = rates_under(f"activate.{request.gpu}")
    recipe = RECIPES[request.recipe]
    more = _core_seconds_per_megapixel() * request.extra_megapixels / request.machine_cores
    seconds = _by_recipe(recipe, known) * _core_ratio(request) + more
    as_measured = recipe.name in known and not request.extra_megapixels and _core_ratio(request) == 1
    sources = [*known.values(), *(rates_under("size").values() if request.extra_megapixels else ())]
    return _stage(request, "activate", seconds, sources, basis="measured" if as_measured else "extrapolated")


def _by_recipe(recipe: Recipe, known: dict[str, Rate]) -> float:
    """Seconds per photo: measured, or interpolated between recipes by the number of network passes."""
    if recipe.name in known:
        return known[recipe.name].seconds
    return _interpolate(_passes(recipe), sorted((_passes(RECIPES[name]), rate.seconds) for name, rate in known.items()))


def _passes(recipe: Recipe) -> int:
    return recipe.steps * recipe.eot_samples


def _interpolate(x: float, points: Sequence[tuple[float, float]]) -> float:
    """Piecewise linear interpolation, extrapolated at both ends; at least 0."""
    index = sum(x > each for each, _ in points)
    index = min(max(index, 1), len(points) - 1)
    (left, low), (right, high) = points[index - 1 : index + 1]
    return max(0.0, low + (high - low) * (x - left) / (right - left))


def _core_seconds_per_megapixel() -> float:
    """Core-seconds per additional megapixel: decoding, processing, writing and the release check."""
    rates = load_rates()
    small, large = rates["size.megapixels"].numbers
    fast, slow = rates["size.activate"].numbers
    processing = rates["machines.none"].number * (slow - fast) / 1000 / (large - small)
    return processing + rates["add.decode"].seconds / rates["size.measured"].number


def _decode(request: EstimateRequest) -> StageEstimate:
    rate, size = load_rates()["add.decode"], load_rates()["size.measured"].number
    seconds = rate.seconds * max(1.0, request.megapixels / size) / request.machine_cores
    basis: Basis = "extrapolated" if request.extra_megapixels or request.machine_cores > 1 else "measured"
    return _stage(request, "decode", seconds, [rate], basis=basis)


def _describe(request: EstimateRequest) -> StageEstimate:
    """The network stage, which does not depend on the size of photos."""
    rate = load_rates()[f"add.{request.gpu}"]
    as_measured = request.gpu == "none" and _core_ratio(request) == 1
    seconds = rate.seconds * _core_ratio(request)
    return _stage(request, "describe", seconds, [rate], basis="measured" if as_measured else "extrapolated")


def _core_ratio(request: EstimateRequest) -> float:
    """Time relative to the measured machine, by the number of cores."""
    return request.measured_cores / request.machine_cores


def _stage(
    request: EstimateRequest,
    name: str,
    seconds: float,
    sources: Sequence[Rate],
    *,
    basis: Basis = "measured",
    parallel: bool = True,
) -> StageEstimate:
    source_lines = sorted({f"{rate.command} on {rate.hardware}" for rate in sources})
    notes = sorted({rate.note for rate in sources if rate.note})
    if name in request.rates:
        seconds, basis, source_lines, notes = 1 / request.rates[name], "given", [], []
    hours = request.photos * seconds / 3600
    return StageEstimate(
        name=name, seconds=seconds, hours=hours, parallel=parallel, basis=basis, sources=source_lines, notes=notes
    )
