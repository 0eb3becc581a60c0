"""Time spent in chosen functions, measured by wrapping them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any


class Stopwatch:
    """Seconds by stage, summed over all threads.

    Stages have an order. A later stage inside an earlier one is counted on its own; an earlier stage inside a later one
    belongs to the later one: decoding a file again during the release check counts as the check.
    """

    def __init__(self, stages: Sequence[str]) -> None:
        self.seconds = dict.fromkeys(stages, 0.0)
        self._order = list(stages)
        self._open: ContextVar[tuple[str, ...]] = ContextVar("open", default=())  # inherited by threads
        self._lock = threading.Lock()

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, wrapped so that its time counts for this stage."""
        position = self._order.index(stage)

        @wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            around = self._open.get()[-1:]
            if around and self._order.index(around[0]) >= position:
                return function(*args, **kwargs)
            token = self._open.set((*self._open.get(), stage))
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                seconds = time.perf_counter() - started
                self._open.reset(token)
                with self._lock:
                    self.seconds[stage] += seconds
                    for each in around:
                        self.seconds[each] -= seconds

        return counted

    @contextmanager
    def timing(self, stages: Mapping[str, Sequence[Callable[..., Any]]]) -> Iterator[None]:
        """Time every call of these functions and methods of homing inside the context."""
        with ExitStack() as stack:
            for stage, functions in stages.items():
                for function in functions:
                    for owner, name in _owners(function):
                        stack.callback(setattr, owner, name, vars(owner)[name])
                        setattr(owner, name, self._counted(stage, vars(owner)[name]))
            yield

    def _counted(self, stage: str, value: Any) -> Any:
        if isinstance(value, classmethod):
            return classmethod(self.timed(stage, value.__func__))
        return self.timed(stage, value)


def _owners(function: Callable[..., Any]) -> list[tuple[Any, str]]:
    """Where callers look up a method or function: its class, or every module that imported it."""
    module = sys.modules[function.__module__]
    if "." in function.__qualname__:
        owner, name = function.__qualname__.split(".")
        return [(getattr(module, owner), name)]
    modules = [each for name, each in list(sys.modules.items()) if name.split(".")[0] == "homing"]
    return [(module, name) for module in modules for name, value in list(vars(module).items()) if value is function]
