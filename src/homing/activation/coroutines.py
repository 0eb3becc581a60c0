"""Coroutines, one per photo, whose requests are answered in batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, TypeVar

from homing.errors import PhotoError

Result = TypeVar("Result")
RequestType = TypeVar("RequestType", bound="BatchedRequest")


class BatchedRequest(ABC):
    """A request that is answered for many photos at once."""

    @classmethod
    @abstractmethod
    def answer(cls: type[RequestType], requests: Sequence[RequestType]) -> Sequence[Any]:
        """The answer to each request; a PhotoError is raised in the coroutine that made it."""


Coroutine = Generator[BatchedRequest, Any, Result]
"""The work on one photo: yields requests, receives their answers, and returns a result."""


def run_coroutines(coroutines: Sequence[Coroutine[Result]]) -> list[Result | PhotoError]:
    """Run all coroutines to their end. The kind of request that came up first is answered first."""
    results: dict[int, Result | PhotoError] = {}
    pending: dict[int, BatchedRequest] = {}
    kinds_in_order: dict[type[BatchedRequest], None] = {}

    def advance(index: int, step: Callable[[], BatchedRequest]) -> None:
        try:
            pending[index] = step()
            kinds_in_order.setdefault(type(pending[index]))
        except StopIteration as end:
            results[index] = end.value
        except PhotoError as error:
            results[index] = error

    for index, coroutine in enumerate(coroutines):
        advance(index, partial(next, coroutine))
    while pending:
        kind = next(kind for kind in kinds_in_order if kind in map(type, pending.values()))
        indices = [index for index, request in pending.items() if type(request) is kind]
        answers = kind.answer([pending.pop(index) for index in indices])
        for index, answer in zip(indices, answers, strict=True):
            coroutine = coroutines[index]
            advance(index, partial(coroutine.throw if isinstance(answer, PhotoError) else coroutine.send, answer))
    return [results[index] for index in range(len(coroutines))]
