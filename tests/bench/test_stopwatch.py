"""Seconds by stage: nesting, threads, and restored functions."""

import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from homing._io.parallel import prefetch_map
from homing.activation import pipeline, release_check
from homing.bench.benches._speed_files import STAGES, Stopwatch
from homing.extractors import describe_images
from homing.photo import Photo


def test_nested_stages_are_counted_by_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def take(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("homing.bench.benches._speed_files.time", SimpleNamespace(perf_counter=lambda: now))
    watch = Stopwatch(["first", "second"])
    first = watch.timed("first", lambda inner=None: (take(1), inner and inner()))
    second = watch.timed("second", lambda inner=None: (take(2), inner and inner()))
    first(second)
    assert watch.seconds == {"first": 1, "second": 2}
    second(first)
    assert watch.seconds == {"first": 1, "second": 5}


def test_threads_are_summed() -> None:
    watch = Stopwatch(["sleep"])
    threads = [threading.Thread(target=watch.timed("sleep", time.sleep), args=(0.1,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert watch.seconds["sleep"] >= 0.3


def test_threads_inherit_the_open_stage() -> None:
    watch = Stopwatch(["decode", "check"])
    decode = watch.timed("decode", time.sleep)
    watch.timed("check", lambda: list(prefetch_map(decode, [0.1, 0.1], threads=2)))()
    assert watch.seconds["decode"] == 0
    assert 0.1 <= watch.seconds["check"] < 0.2


def test_a_failing_function_is_counted_and_raises() -> None:
    watch = Stopwatch(["stage"])
    with pytest.raises(ZeroDivisionError):
        watch.timed("stage", lambda: time.sleep(0.05) or 1 / 0)()
    assert watch.seconds["stage"] >= 0.05
    watch.timed("stage", time.sleep)(0.05)
    assert watch.seconds["stage"] >= 0.1


def test_functions_are_wrapped_in_every_module_and_restored(photos: Path, extractor) -> None:
    watch = Stopwatch(list(STAGES))
    before = {stage: [_current(function) for function in functions] for stage, functions in STAGES.items()}
    with watch.timing(STAGES):
        pixels = Photo.load(photos / "flower.jpg").pixels()
        assert watch.seconds["decode"] > 0
        assert watch.seconds["describe"] == 0
        assert pipeline.describe_images is not describe_images
        release_check.describe_images(extractor, [pixels])
        assert watch.seconds["describe"] > 0
    assert pipeline.describe_images is release_check.describe_images is describe_images
    assert before == {stage: [_current(function) for function in functions] for stage, functions in STAGES.items()}


def _current(function) -> object:
    """The object that a function's name refers to now."""
    found = __import__(function.__module__, fromlist=["_"])
    for name in function.__qualname__.split("."):
        found = getattr(found, name)
    return found
