"""Many photos each go their own way to a file; what they ask on it is answered for all of them together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, TypeVar

from homing.errors import PhotoError

Result = TypeVar("Result")
Kind = TypeVar("Kind", bound="Question")


class Question(ABC):
    """Something that takes no longer for many photos than for one."""

    @classmethod
    @abstractmethod
    def answer(cls: type[Kind], questions: Sequence[Kind]) -> Sequence[Any]:
        """The answer to each; a PhotoError ends the way of the photo that asked, unless it goes on from there."""


Way = Generator[Question, Any, Result]
"""Yields questions, is sent their answers, returns what came of it."""


def together(ways: Sequence[Way[Result]]) -> list[Result | PhotoError]:
    """Go all ways to their end. The kind of question that came up first is answered first: who is behind catches up."""
    results: dict[int, Result | PhotoError] = {}
    asked: dict[int, Question] = {}
    kinds: dict[type[Question], None] = {}

    def go_on(place: int, step: Callable[[], Question]) -> None:
        try:
            asked[place] = step()
            kinds.setdefault(type(asked[place]))
        except StopIteration as end:
            results[place] = end.value
        except PhotoError as error:
            results[place] = error

    for place, way in enumerate(ways):
        go_on(place, partial(next, way))
    while asked:
        kind = next(kind for kind in kinds if kind in map(type, asked.values()))
        some = [place for place, question in asked.items() if type(question) is kind]
        answers = kind.answer([asked.pop(place) for place in some])
        for place, answer in zip(some, answers, strict=True):
            way = ways[place]
            go_on(place, partial(way.throw if isinstance(answer, PhotoError) else way.send, answer))
    return [results[place] for place in range(len(ways))]
