"""Ways that ask: who is behind catches up, who fails fails alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from homing.activation.courses import Course, Request, answer_together
from homing.errors import HomingError, PhotoError


@dataclass(frozen=True)
class Double(Request):
    number: int

    @classmethod
    def answer(cls, requests: Sequence["Double"]) -> list[int | PhotoError]:
        ASKED.append([each.number for each in requests])
        return [2 * each.number if each.number < 100 else PhotoError("too large") for each in requests]


class Done(Double):
    """Of another kind."""

    @classmethod
    def answer(cls, requests: Sequence["Double"]) -> list[str]:
        ASKED.append([each.number for each in requests])
        return [f"done with {each.number}" for each in requests]


ASKED: list[list[int]] = []


def until_over(number: int, limit: int) -> Course[str]:
    while number <= limit:
        number = yield Double(number)
    return (yield Done(number))


@pytest.fixture(autouse=True)
def nothing_asked_yet() -> None:
    ASKED.clear()


def test_who_is_behind_catches_up() -> None:
    assert answer_together([until_over(1, 3), until_over(9, 10), until_over(7, 5)]) == [
        "done with 4",
        "done with 18",
        "done with 7",
    ]
    assert ASKED == [[1, 9], [2], [7, 18, 4]]


def test_who_fails_fails_alone() -> None:
    found = answer_together([until_over(60, 200), until_over(1, 1)])
    assert str(found[0]) == "too large" and isinstance(found[0], PhotoError)
    assert found[1] == "done with 2"


def test_one_may_go_on_from_an_error() -> None:
    def stubborn() -> Course[str]:
        try:
            yield Double(100)
        except PhotoError:
            return (yield Done(1))
        return "never"

    assert answer_together([stubborn()]) == ["done with 1"]


def test_other_errors_end_all() -> None:
    def broken() -> Course[str]:
        yield Double(1)
        raise HomingError("no disk")

    with pytest.raises(HomingError, match="no disk"):
        answer_together([broken(), until_over(1, 1)])


def test_nobody_asks_nothing() -> None:
    assert answer_together([]) == []
