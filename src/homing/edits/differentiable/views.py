"""Views, and the registry of differentiable edits, which have the names of the exact ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from homing.edits import KINDS, Kind


@dataclass(frozen=True)
class Views:
    """Photos as network inputs: (B, 3, S, S) squares in [0, 1].

    `ratio` (B,) is each photo's width over its height before it was resized to a square.
    """

    pixels: Tensor
    ratio: Tensor

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, rows: slice | Tensor) -> Views:
        return Views(self.pixels[rows], self.ratio[rows])

    def repeat(self, times: int) -> Views:
        """Repeat the whole batch this many times."""
        return Views(self.pixels.repeat(times, 1, 1, 1), self.ratio.repeat(times))

    @property
    def side(self) -> int:
        """Side of the squares in pixels."""
        return self.pixels.shape[-1]


Function = TypeVar("Function", bound=Callable[..., Views])


@dataclass(frozen=True, kw_only=True)
class DifferentiableEdit:
    """Approximation of the exact edit on network inputs, with a gradient."""

    kind: Kind
    function: Callable[..., Views]
    random: bool

    def __call__(self, views: Views, strength: Tensor | None, generator: torch.Generator) -> Views:
        """Apply the edit; new views of the same shape in [0, 1]. `strength` is (B,), or None for edits without one."""
        pixels = views.pixels
        assert pixels.ndim == 4 and pixels.shape[1:] == (3, views.side, views.side), tuple(pixels.shape)
        assert views.ratio.shape == (len(views),), tuple(views.ratio.shape)
        arguments: dict[str, Any] = {}
        if self.kind.bounds is not None:
            assert strength is not None and strength.shape == (len(views),), self.kind.name
            arguments["strength"] = strength.to(pixels)
        else:
            assert strength is None, self.kind.name
        if self.random:
            arguments["generator"] = generator
        # Half precision is too coarse for products of pixels and matrices.
        with torch.autocast(pixels.device.type, enabled=False):
            result = self.function(views, **arguments)
        return Views(result.pixels.clamp(0, 1), result.ratio)


DIFFERENTIABLE_EDITS: dict[str, DifferentiableEdit] = {}
"""Every differentiable edit by name, in the order of registration."""


def differentiable_edit(function: Function) -> Function:
    """Register a function as the differentiable version of the edit of the same name.

    It takes `views` it must not change, then `strength` (B,) if the edit has one, and `generator`, on the device of
    the views, if it draws anything. It may leave [0, 1]: the values are clamped afterwards.
    """
    name = function.__name__
    assert name in KINDS and name not in DIFFERENTIABLE_EDITS, name
    parameters = inspect.signature(function).parameters
    assert ("strength" in parameters) == (KINDS[name].bounds is not None), name
    DIFFERENTIABLE_EDITS[name] = DifferentiableEdit(
        kind=KINDS[name], function=function, random="generator" in parameters
    )
    return function


@differentiable_edit
def identity(views: Views) -> Views:
    """Return the views unchanged."""
    return views
