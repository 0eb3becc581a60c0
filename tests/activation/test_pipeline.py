"""Photos on their way: batches that fit, in order, halved where memory does not suffice."""

import threading
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from homing.activation.pipeline import Size, batches, in_batches
from homing.errors import PhotoError
from homing.photo import Photo


def photo(name: str, height: int = 10, width: int = 10) -> Photo:
    return Photo(name, b"", np.zeros((height, width, 3), np.uint8), None, "PNG", 1, None)


def names(photos: Sequence[Photo]) -> list[str]:
    return [each.name for each in photos]


def test_a_batch_holds_so_many_photos_and_so_many_pixels() -> None:
    sizes = [10, 10, 10, 40, 10, 10, 10, 10]  # pixels a side
    items = [(place, photo(str(place), side, side)) for place, side in enumerate(sizes)]
    made = [[item for item, _ in batch] for batch in batches(items, Size(photos=3, pixels=1000))]
    assert made == [[0, 1, 2], [3], [4, 5, 6], [7]]


def test_results_come_in_order_and_what_is_no_photo_is_passed_on() -> None:
    items = [(0, photo("a")), (1, "done"), (2, photo("b")), (3, photo("c"))]
    results = [pair for batch in in_batches(items, names, Size(photos=2, pixels=10**6)) for pair in batch]
    assert sorted(results) == [(0, "a"), (1, "done"), (2, "b"), (3, "c")]
    photos_alone = [pair for pair in results if pair[1] != "done"]
    assert photos_alone == [(0, "a"), (2, "b"), (3, "c")]


def test_a_batch_is_moved_while_another_is_and_no_more_are_begun() -> None:
    size = Size(photos=1, pixels=10**6, at_once=2)
    both = threading.Barrier(2, timeout=120)  # never passed if batches were moved one after the other
    begun: list[str] = []

    def move(photos: Sequence[Photo]) -> list[str]:
        begun.extend(names(photos))
        both.wait()
        return names(photos)

    items = ((place, photo(str(place))) for place in range(4))
    moving = in_batches(items, move, size)
    next(moving)
    assert len(begun) <= 3
    assert len(list(moving)) == 3


@pytest.mark.parametrize(("photos", "threads"), [(1, 2), (2, 1)])
def test_batches_beside_each_other_share_the_cores_and_one_has_them_all(photos: int, threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    seen: list[int] = []

    def move(photos: Sequence[Photo]) -> list[str]:
        seen.append(torch.get_num_threads())
        return names(photos)

    try:
        items = [(place, photo(str(place))) for place in range(photos)]
        assert len(list(in_batches(items, move, Size(photos=1, pixels=10**6, threads=1)))) == photos
        assert seen == [threads] * photos
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA out of memory. Tried to allocate")])
def test_a_batch_too_large_for_the_memory_is_halved(error: Exception) -> None:
    tried: list[int] = []

    def move(photos: Sequence[Photo]) -> list[str]:
        tried.append(len(photos))
        if len(photos) > 2 or "huge" in names(photos):
            raise error
        return names(photos)

    items = [(name, photo(name)) for name in ("a", "b", "huge", "c")]
    ((*results,),) = in_batches(items, move, Size(photos=4, pixels=10**6))
    assert tried == [4, 2, 2, 1, 1]
    told = dict(results)
    assert isinstance(told.pop("huge"), PhotoError)
    assert told == {"a": "a", "b": "b", "c": "c"}


def test_other_errors_are_nobodys_to_swallow() -> None:
    def move(_: Sequence[Photo]) -> list[str]:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        list(in_batches([(0, photo("a"))], move))
