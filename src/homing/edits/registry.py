"""Registry of edits: each has a name, most have a strength; the label `contrast-0.5` holds both."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from PIL import Image

from homing.errors import HomingError, UnknownNameError

Family = Literal["none", "color", "pixel", "spatial", "overlay", "mixed"]
Function = TypeVar("Function", bound=Callable[..., Image.Image])


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Properties of all edits of one name: the function and the strengths it accepts."""

    name: str
    function: Callable[..., Image.Image]
    family: Family
    bounds: tuple[float, float] | None
    neutral: float | None
    whole: bool
    random: bool

    def check(self, strength: float | None) -> float | None:
        """Validate a strength and normalize its type: `int` for edits with whole strengths, else `float`."""
        if self.bounds is None:
            if strength is not None:
                raise HomingError(f"edit '{self.name}' takes no strength, got {strength}; write '{self.name}'")
            return None
        low, high = self.bounds
        expected = f"edit '{self.name}' takes a {'whole number' if self.whole else 'strength'} from {low} to {high}"
        if strength is None:
            raise HomingError(f"{expected}, got none; write '{self.name}-{high}'")
        if not low <= strength <= high or (self.whole and strength != int(strength)):
            raise HomingError(f"{expected}, got {strength}")
        return int(strength) if self.whole else float(strength)


KINDS: dict[str, Kind] = {}
"""Every edit by name, in the order of registration."""


def edit(
    family: Family,
    *,
    bounds: tuple[float, float] | None = None,
    neutral: float | None = None,
    whole: bool = False,
) -> Callable[[Function], Function]:
    """Register a function as the edit of the function's name.

    The function takes an RGB image, which it must not change, then `strength` if the edit has `bounds`, and `rng` if it
    is random. At the `neutral` strength the function is not called and the copy keeps its pixels. `whole` strengths
    are integers.
    """

    def register(function: Function) -> Function:
        name = function.__name__
        parameters = inspect.signature(function).parameters
        assert ("strength" in parameters) == (bounds is not None), name
        assert name not in KINDS, name
        KINDS[name] = Kind(
            name=name,
            function=function,
            family=family,
            bounds=bounds,
            neutral=neutral,
            whole=whole,
            random="rng" in parameters,
        )
        return function

    return register


@dataclass(frozen=True)
class Edit:
    """An edit at a strength: comparable, picklable, written as a label, and called on an image."""

    name: str
    strength: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", _kind(self.name).check(self.strength))

    @property
    def kind(self) -> Kind:
        """Properties that all edits of this name share."""
        return KINDS[self.name]

    @property
    def label(self) -> str:
        """Name and strength, as `parse` accepts them: `contrast-0.5`, `jpeg-50`, `meme`."""
        return self.name if self.strength is None else f"{self.name}-{self.strength}"

    def __call__(self, image: Image.Image, seed: int = 0) -> Image.Image:
        """Apply the edit and return a new RGB image without metadata; equal seeds give equal pixels."""
        if image.mode != "RGB":
            raise HomingError(f"an edit needs an image of mode RGB, got {image.mode}; convert it first")
        if self.strength is not None and self.strength == self.kind.neutral:
            result = image.copy()
        else:
            result = self.kind.function(image, **self._arguments(seed))
        # Pillow keeps some of the file's metadata in some cases; an orientation tag would rotate the copy again.
        result.info = {}
        return result

    def _arguments(self, seed: int) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        if self.strength is not None:
            arguments["strength"] = self.strength
        if self.kind.random:
            # The label is part of the seed, so that two edits of one photo use different random numbers.
            arguments["rng"] = np.random.default_rng([seed, zlib.crc32(self.label.encode())])
        return arguments


def parse(label: str) -> Edit:
    """The edit of a label: `contrast-0.5`, `rotation--30`, `meme`."""
    name, dash, text = label.partition("-")
    _kind(name)
    try:
        strength = float(text) if dash else None
    except ValueError:
        raise HomingError(f"the strength of edit '{label}' must be a number, got '{text}'") from None
    return Edit(name, strength)


def _kind(name: str) -> Kind:
    if name not in KINDS:
        raise UnknownNameError("edit", name, KINDS)
    return KINDS[name]


@edit("none")
def identity(image: Image.Image) -> Image.Image:
    """Copy the photo unchanged."""
    return image.copy()
