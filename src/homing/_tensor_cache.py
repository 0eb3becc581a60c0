"""A cache for functions that make tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar, cast

import torch

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def cached_tensor(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Cache a function's results per arguments, computed outside of inference mode.

    A tensor made in inference mode cannot take part in a gradient. Copying constants to a GPU again blocks the host.
    """

    @wraps(function)
    def make(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with torch.inference_mode(False):
            return function(*args, **kwargs)

    return cast("Callable[Arguments, Result]", cache(make))
