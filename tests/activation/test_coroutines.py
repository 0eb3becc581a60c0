"""Coroutines with batched requests."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from homing.activation.coroutines import BatchedRequest, Coroutine, run_coroutines
from homing.errors import HomingError, PhotoError


@dataclass(frozen=True)
class Double(BatchedRequest):
    number: int

    @classmethod
    def answer(cls, requests: Sequence["Double"]) -> list[int | PhotoError]:
        ANSWERED.append([each.number for each in requests])
        return [2 * each.number if each.number < 100 else PhotoError("too large") for each in requests]


class Done(Double):
    """Request of another type."""

    @classmethod
    def answer(cls, requests: Sequence["Double"]) -> list[str]:
        ANSWERED.append([each.number for each in requests])
        return [f"done with {each.number}" for each in requests]


ANSWERED: list[list[int]] = []


def until_over(number: int, limit: int) -> Coroutine[str]:
    while number <= limit:
        number = yield Double(number)
    return (yield Done(number))


@pytest.fixture(autouse=True)
def nothing_asked_yet() -> None:
    ANSWERED.clear()


def test_requests_of_one_type_run_as_one_batch() -> None:
    assert run_coroutines([until_over(1, 3), until_over(9, 10), until_over(7, 5)]) == [
        "done with 4",
        "done with 18",
        "done with 7",
    ]
    assert ANSWERED == [[1, 9], [2], [7, 18, 4]]


def test_an_error_ends_only_its_own_coroutine() -> None:
    found = run_coroutines([until_over(60, 200), until_over(1, 1)])
    assert str(found[0]) == "too large" and isinstance(found[0], PhotoError)
    assert found[1] == "done with 2"


def test_a_coroutine_may_catch_its_error() -> None:
    def stubborn() -> Coroutine[str]:
        try:
            yield Double(100)
        except PhotoError:
            return (yield Done(1))
        return "never"

    assert run_coroutines([stubborn()]) == ["done with 1"]


def test_other_errors_end_all_coroutines() -> None:
    def broken() -> Coroutine[str]:
        yield Double(1)
        raise HomingError("no disk")

    with pytest.raises(HomingError, match="no disk"):
        run_coroutines([broken(), until_over(1, 1)])


def test_without_coroutines_the_result_is_empty() -> None:
    assert run_coroutines([]) == []
