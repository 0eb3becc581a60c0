"""Batches of photos: size limits, order, concurrency and halving when memory runs out."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from homing.activation.pipeline import BatchSize, ReleasePipeline, split_into_batches
from homing.errors import PhotoError
from homing.photo import Photo, PhotoFile


def photo(name: str, height: int = 10, width: int = 10) -> Photo:
    return Photo(name, b"", np.zeros((height, width, 3), np.uint8), None, "PNG", 1, None)


def names(photos: Sequence[Photo]) -> list[str]:
    return [each.name for each in photos]


def run(
    items: Iterable[tuple[object, object]], activate: Callable[[Sequence[Photo]], Sequence[object]], size: BatchSize
) -> Iterator[list[Any]]:
    """The batches that reach the sink of a pipeline whose source gives these items."""
    return ReleasePipeline(list, activate, lambda batch: [list(batch)], size).run(items)


def test_batches_are_limited_in_photos_and_pixels() -> None:
    sizes = [10, 10, 10, 40, 10, 10, 10, 10]  # pixels per side
    items = [(number, photo(str(number), side, side)) for number, side in enumerate(sizes)]
    batched = [[item for item, _ in batch] for batch in split_into_batches(items, BatchSize(photos=3, pixels=1000))]
    assert batched == [[0, 1, 2], [3], [4, 5, 6], [7]]


def test_results_keep_the_order_and_failed_photos_are_passed_through() -> None:
    items = [(0, photo("a")), (1, "done"), (2, photo("b")), (3, photo("c"))]
    results = [pair for batch in run(items, names, BatchSize(photos=2, pixels=10**6)) for pair in batch]
    assert sorted(results) == [(0, "a"), (1, "done"), (2, "b"), (3, "c")]
    photos_alone = [pair for pair in results if pair[1] != "done"]
    assert photos_alone == [(0, "a"), (2, "b"), (3, "c")]


def test_two_batches_run_at_once_and_no_more_are_started() -> None:
    size = BatchSize(photos=1, pixels=10**6, concurrent=2)
    both = threading.Barrier(2, timeout=120)  # never passed if batches run one after the other
    started: list[str] = []

    def activate_batch(photos: Sequence[Photo]) -> list[str]:
        started.extend(names(photos))
        both.wait()
        return names(photos)

    items = ((number, photo(str(number))) for number in range(4))
    results = run(items, activate_batch, size)
    next(results)
    assert len(started) <= 3
    assert len(list(results)) == 3


@pytest.mark.parametrize(("photos", "threads"), [(1, 2), (2, 1)])
def test_concurrent_batches_share_the_cores_and_a_single_batch_uses_all(photos: int, threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    seen: list[int] = []

    def activate_batch(photos: Sequence[Photo]) -> list[str]:
        seen.append(torch.get_num_threads())
        return names(photos)

    try:
        items = [(number, photo(str(number))) for number in range(photos)]
        assert len(list(run(items, activate_batch, BatchSize(photos=1, pixels=10**6, threads=1)))) == photos
        assert seen == [threads] * photos
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA out of memory. Tried to allocate")])
def test_a_batch_too_large_for_the_memory_is_halved(error: Exception) -> None:
    tried: list[int] = []

    def activate_batch(photos: Sequence[Photo]) -> list[str]:
        tried.append(len(photos))
        if len(photos) > 2 or "huge" in names(photos):
            raise error
        return names(photos)

    items = [(name, photo(name)) for name in ("a", "b", "huge", "c")]
    ((*results,),) = run(items, activate_batch, BatchSize(photos=4, pixels=10**6))
    assert tried == [4, 2, 2, 1, 1]
    by_name = dict(results)
    assert isinstance(by_name.pop("huge"), PhotoError)
    assert by_name == {"a": "a", "b": "b", "c": "c"}


def test_other_errors_are_raised() -> None:
    def activate_batch(_: Sequence[Photo]) -> list[str]:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        list(run([(0, photo("a"))], activate_batch, BatchSize(photos=4, pixels=10**6)))


def test_a_file_that_is_no_photo_reaches_the_sink_as_its_error(photos: Path) -> None:
    good = PhotoFile("good.png", (photos / "camera.png").read_bytes())
    items = [("bad.jpg", PhotoFile("bad.jpg", b"hello")), ("good.png", good)]
    results = dict(pair for batch in run(items, names, BatchSize(photos=4, pixels=10**6)) for pair in batch)
    assert isinstance(results["bad.jpg"], PhotoError) and "bad.jpg" in str(results["bad.jpg"])
    assert results["good.png"] == "good.png"
