"""Tensors that are made once and kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar, cast

import torch

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def cached_tensor(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Call the function once for each set of arguments, and never under the caller's inference mode.

    A tensor made there could not take part in a gradient later. Copying numbers to a GPU anew makes the host wait.
    """

    @wraps(function)
    def make(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with torch.inference_mode(False):
            return function(*args, **kwargs)

    return cast("Callable[Arguments, Result]", cache(make))
