"""Many photos each take their own course to a file; what they ask on it is answered for all of them together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, TypeVar

from homing.errors import PhotoError

Result = TypeVar("Result")
Kind = TypeVar("Kind", bound="Request")


class Request(ABC):
    """Something that takes no longer for many photos than for one."""

    @classmethod
    @abstractmethod
    def answer(cls: type[Kind], requests: Sequence[Kind]) -> Sequence[Any]:
        """The answer to each; a PhotoError is raised where the photo asked."""


Course = Generator[Request, Any, Result]
"""Of one photo: yields requests, is sent their answers, returns what came of it."""


def answer_together(courses: Sequence[Course[Result]]) -> list[Result | PhotoError]:
    """Go all to their end. The kind of request that came up first is answered first: who is behind catches up."""
    results: dict[int, Result | PhotoError] = {}
    asked: dict[int, Request] = {}
    kinds: dict[type[Request], None] = {}

    def go_on(place: int, step: Callable[[], Request]) -> None:
        try:
            asked[place] = step()
            kinds.setdefault(type(asked[place]))
        except StopIteration as end:
            results[place] = end.value
        except PhotoError as error:
            results[place] = error

    for place, course in enumerate(courses):
        go_on(place, partial(next, course))
    while asked:
        kind = next(kind for kind in kinds if kind in map(type, asked.values()))
        some = [place for place, request in asked.items() if type(request) is kind]
        answers = kind.answer([asked.pop(place) for place in some])
        for place, answer in zip(some, answers, strict=True):
            course = courses[place]
            go_on(place, partial(course.throw if isinstance(answer, PhotoError) else course.send, answer))
    return [results[place] for place in range(len(courses))]
