"""Estimates equal figures computed by hand from the rates."""

import json
from dataclasses import asdict, replace

import pytest

from homing.activation import RECIPES
from homing.errors import HomingError, UnknownNameError
from homing.estimate import Estimate, EstimateRequest, Prices, estimate, load_rates

# 240 hours of work, 24 of the single writer, and 86.4 seconds to build the index.
OWN = EstimateRequest(photos=86_400_000, gpu="h200", rates={"activate": 100, "record": 1000, "index": 1e6})


def hours(result: Estimate) -> dict[str, float]:
    return {stage.name: stage.hours for stage in result.stages}


def test_given_rates_replace_measured_ones() -> None:
    result = estimate(OWN)
    assert hours(result) == pytest.approx({"activate": 240, "record": 24, "index": 0.024})
    assert {stage.basis for stage in result.stages} == {"given"}
    assert (result.machines, result.hours, result.meets_deadline) == (1, pytest.approx(240.024), None)


@pytest.mark.parametrize(
    ("days", "machines", "took", "meets_deadline"),
    [
        (20, 1, 240.024, True),
        (10, 2, 120.024, True),  # 240.024 hours are more than ten days
        (5.001, 2, 120.024, True),
        (5, 3, 80.024, True),
        (2, 6, 40.024, True),
        (0.5, 10, 24.024, False),  # as many as the single writer keeps up with
        (0.0001, 10, 24.024, False),  # less than the index takes
    ],
)
def test_machines_for_a_deadline(days: float, machines: int, took: float, meets_deadline: bool) -> None:
    result = estimate(replace(OWN, days=days))
    assert (result.machines, result.bottleneck, result.meets_deadline) == (machines, "activate", meets_deadline)
    assert result.hours == pytest.approx(took)
    assert result.max_machines == 10


def test_a_slow_writer_limits_the_number_of_machines() -> None:
    result = estimate(replace(OWN, days=1, rates={"activate": 2000, "record": 100, "index": 1e6}))
    assert (result.machines, result.max_machines, result.bottleneck, result.meets_deadline) == (1, 1, "record", False)


def test_hours_of_activation() -> None:
    """791.6 ms per photo of 0.18 megapixels on 2 cores (docs/reference/performance.md): 219.89 hours per million."""
    result = estimate(EstimateRequest(photos=1_000_000, megapixels=0.18))
    assert result.stages[0].hours == pytest.approx(791.6 / 3600 * 1000)
    assert result.stages[0].basis == "measured"
    # 0.034 s on one H200 with 16 cores (docs/reference/homing-1.md).
    assert estimate(EstimateRequest(photos=1_000_000, megapixels=0.18, gpu="h200")).stages[0].hours == pytest.approx(
        9.44, abs=0.01
    )


def test_hours_of_larger_photos() -> None:
    """2 × (3.731 − 0.454) / 11.8 core-seconds per megapixel, and 0.0032 / 0.18 to decode it, divided by the cores."""
    more = 11.82 * (2 * 3.277 / 11.8 + 0.0032 / 0.18)
    for gpu, seconds, cores in (("none", 0.7916, 2), ("h200", 0.034, 16)):
        (stage, *_) = estimate(EstimateRequest(photos=1, megapixels=12, gpu=gpu)).stages
        assert stage.seconds == pytest.approx(seconds + more / cores)
        assert stage.basis == "extrapolated"


@pytest.mark.parametrize("gpu", ["none", "h200"])
@pytest.mark.parametrize("recipe", [*RECIPES, "passive"])
def test_twice_the_photos_take_twice_the_hours_and_bytes(gpu: str, recipe: str) -> None:
    one, two = (estimate(EstimateRequest(photos=count, gpu=gpu, recipe=recipe)) for count in (10**8, 2 * 10**8))
    assert hours(two) == pytest.approx({name: 2 * each for name, each in hours(one).items()})
    assert two.hours == pytest.approx(2 * one.hours)
    for small, large in zip(one.storage, two.storage, strict=True):
        if small.name != "process that searches":  # which has a constant part, the cell centers
            assert large.bytes == pytest.approx(2 * small.bytes, rel=0.02)


def test_recipes_are_interpolated_by_network_passes() -> None:
    """homing-max has 452 passes more than homing; from paper to homing each took 29.8 ms."""
    seconds = {
        name: estimate(EstimateRequest(photos=1, megapixels=0.18, recipe=name)).stages[0].seconds for name in RECIPES
    }
    assert seconds["homing-max"] == pytest.approx(0.7916 + 452 * (0.7916 - 0.2548) / 18)
    assert (
        0 < seconds["paper-fast"] < seconds["homing-fast"] < seconds["paper"] < seconds["homing"] < seconds["paper-eot"]
    )


def test_time_falls_with_cores() -> None:
    for recipe in ("homing", "passive"):
        few, many = (estimate(EstimateRequest(photos=1000, cores=cores, recipe=recipe)) for cores in (2, 64))
        shared = [name for name in hours(few) if name not in ("record", "index")]
        assert [hours(few)[name] / hours(many)[name] for name in shared] == pytest.approx([32] * len(shared))
        assert hours(few)["record"] == hours(many)["record"]


def test_cost_items_and_their_order() -> None:
    prices = Prices(gpu_hour=3.5, core_hour=0.05, terabyte_month=20)
    result = estimate(replace(OWN, prices=prices, photo_bytes=1_000_000))
    found = {(item.name, item.unit): (item.cost, item.period) for item in result.cost_items}
    assert found["activate", "GPU-hours"] == (pytest.approx(840), "once")
    assert found["activate", "core-hours"] == (pytest.approx(240 * 16 * 0.05), "once")
    assert found["released files", "terabyte-months"] == (pytest.approx(86.4 * 20), "month")
    costs = [item.cost or 0 for item in result.cost_items]
    assert costs == sorted(costs, reverse=True)
    assert result.cost_items[0].name == "released files"


def test_items_without_a_price_have_no_cost() -> None:
    assert {item.cost for item in estimate(OWN).cost_items} == {None}
    partly_priced = estimate(replace(OWN, prices=Prices(terabyte_month=20)))
    assert [item.cost is None for item in partly_priced.cost_items] == [False, False, False, True, True]


def test_queries_keep_cores_busy() -> None:
    few, many = (estimate(EstimateRequest(photos=10**6, queries_per_second=count)) for count in (10, 20))
    assert few.search_cores == pytest.approx(10 * 2 / load_rates()["serve.searches"].number)
    assert many.search_cores == pytest.approx(2 * few.search_cores)
    assert estimate(EstimateRequest(photos=10**9, queries_per_second=10)).search_cores > few.search_cores
    assert "search" in {item.name for item in few.cost_items}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"gpu": "h20"}, "did you mean 'h200'"),
        ({"recipe": "homming"}, "did you mean 'homing'"),
        ({"engine": "fais"}, "did you mean 'faiss'"),
        ({"rates": {"activated": 3}}, "did you mean 'activate'"),
        ({"rates": {"decode": 3}}, "unknown stage 'decode'"),  # activation includes decoding
        ({"rates": {"activate": 0}}, "from 1e-18 to"),
        ({"photos": 0}, "--photos takes a value from 1 to"),
        ({"photos": 2.5}, "whole number"),
        ({"megapixels": 0}, "from 1e-18 to"),
        ({"days": float("nan")}, "got nan"),
        ({"days": float("inf")}, "got inf"),
        ({"queries_per_second": -1}, "from 0 to"),
        ({"photos": float("inf")}, r"to 1e\+18, got inf"),
        ({"photos": 10**308}, r"to 1e\+18, got a number of more than 300 digits"),
        ({"photos": 10**400}, "got a number of more than 300 digits"),
        ({"cells": 10**21}, r"to 1e\+18, got 1e\+21"),
        ({"megapixels": 1e300}, r"from 1e-18 to 1e\+18"),
        ({"rates": {"activate": 1e-320}}, r"from 1e-18 to 1e\+18"),
        ({"queries_per_second": 1e308}, r"from 0 to 1e\+18"),
        ({"probes": 5000}, "at most the number of cells, 4,096"),
        ({"gpu": "h200", "cores": 64}, "16 cores"),
    ],
)
def test_wrong_requests_are_rejected_in_one_line(wrong: dict[str, object], says: str) -> None:
    with pytest.raises((HomingError, UnknownNameError), match=says) as raised:
        EstimateRequest(**{"photos": 10} | wrong)  # type: ignore[arg-type]
    assert "\n" not in str(raised.value)


def test_the_largest_numbers_give_finite_estimates() -> None:
    most, whole = 1e18, 10**18
    sizes = {"megapixels": most, "photo_bytes": whole, "cells": whole, "code_bytes": whole, "queries_per_second": most}
    prices = Prices(gpu_hour=most, core_hour=most, terabyte_month=most)
    for engine in ("faiss", "lance"):
        result = estimate(EstimateRequest(photos=whole, engine=engine, days=1 / most, prices=prices, **sizes))  # type: ignore[arg-type]
        json.dumps(asdict(result), allow_nan=False)


def test_prices_are_not_negative() -> None:
    with pytest.raises(HomingError, match="--gpu-hour takes a value from 0"):
        Prices(gpu_hour=-1)
