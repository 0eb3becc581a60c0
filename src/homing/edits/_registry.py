"""Registry of edits: each has a name, most have a strength; the label `contrast-0.5` holds both."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from homing.edits._surroundings import GENERATED, Surroundings, generated_pixels
from homing.edits._views import Views
from homing.errors import HomingError, UnknownNameError

Family = Literal["none", "color", "pixel", "spatial", "overlay", "scene", "mixed"]
ImageFunction = Callable[..., Image.Image]
ViewsFunction = Callable[..., Views]


@dataclass(kw_only=True, eq=False)
class Kind:
    """All edits of one name: the exact function, the strengths it accepts, and its differentiable version."""

    name: str
    function: ImageFunction
    family: Family
    bounds: tuple[float, float] | None
    neutral: float | None
    whole: bool
    views_function: ViewsFunction | None = None
    """The differentiable version, if there is one."""

    def __post_init__(self) -> None:
        assert _takes(self.function, "strength") == (self.bounds is not None), self.name

    @property
    def random(self) -> bool:
        """Whether the exact edit draws random numbers."""
        return _takes(self.function, "rng")

    @property
    def takes_surroundings(self) -> bool:
        """Whether the edit puts other pictures around the photo."""
        return _takes(self.function, "surroundings")

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

    def differentiable(self, function: ViewsFunction) -> ViewsFunction:
        """Register a function as the differentiable version of this edit.

        It takes `views` it must not change, then `strength` (B,) if the edit has one, `generator`, on the device of
        the views, if it draws anything, and `surroundings` (N, 3, S, S) if it puts other pictures around the photo. It
        may leave [0, 1]: the values are clamped afterwards.
        """
        assert self.views_function is None, self.name
        assert _takes(function, "strength") == (self.bounds is not None), self.name
        self.views_function = function
        return function

    def edit_views(
        self, views: Views, strength: Tensor | None, generator: torch.Generator, surroundings: Tensor | None = None
    ) -> Views:
        """Apply the differentiable version; new views of the same shape in [0, 1].

        `strength` is (B,), or None for edits without one. `surroundings` (N, 3, S, S) are other pictures, drawn ones by
        default.
        """
        pixels = views.pixels
        assert self.views_function is not None, f"edit '{self.name}' has no differentiable version"
        assert pixels.ndim == 4 and pixels.shape[1:] == (3, views.side, views.side), tuple(pixels.shape)
        assert views.ratio.shape == (len(views),), tuple(views.ratio.shape)
        arguments: dict[str, Any] = {}
        if self.bounds is not None:
            assert strength is not None and strength.shape == (len(views),), self.name
            arguments["strength"] = strength.to(pixels)
        else:
            assert strength is None, self.name
        if _takes(self.views_function, "generator"):
            arguments["generator"] = generator
        if _takes(self.views_function, "surroundings"):
            pixels_around = generated_pixels(views.side, pixels.device) if surroundings is None else surroundings
            arguments["surroundings"] = pixels_around.to(pixels)
        # Half precision is too coarse for products of pixels and matrices.
        with torch.autocast(pixels.device.type, enabled=False):
            result = self.views_function(views, **arguments)
        return Views(result.pixels.clamp(0, 1), result.ratio)


def _takes(function: Callable[..., Any], parameter: str) -> bool:
    return parameter in inspect.signature(function).parameters


KINDS: dict[str, Kind] = {}
"""Every edit by name, in the order of registration."""


def edit(
    family: Family,
    *,
    bounds: tuple[float, float] | None = None,
    neutral: float | None = None,
    whole: bool = False,
) -> Callable[[ImageFunction], Kind]:
    """Register a function as the edit of the function's name, with dashes.

    The function takes an RGB image, which it must not change, then `strength` if the edit has `bounds`, `rng` if it is
    random, and `surroundings` if it puts other pictures around the photo. At the `neutral` strength the function is not
    called and the copy keeps its pixels. `whole` strengths are integers. The function becomes a Kind, whose
    `differentiable` registers the version for batches.
    """

    def register(function: ImageFunction) -> Kind:
        name = function.__name__.rstrip("_").replace("_", "-")
        assert name not in KINDS, name
        KINDS[name] = Kind(name=name, function=function, family=family, bounds=bounds, neutral=neutral, whole=whole)
        return KINDS[name]

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

    def __call__(self, image: Image.Image, seed: int = 0, surroundings: Surroundings = GENERATED) -> Image.Image:
        """Apply the edit and return a new RGB image without metadata; equal seeds give equal pixels.

        `surroundings` are the pictures around the photo in a page or a collage, drawn ones by default.
        """
        if image.mode != "RGB":
            raise HomingError(f"an edit needs an image of mode RGB, got {image.mode}; convert it first")
        arguments: dict[str, Any] = {} if self.strength is None else {"strength": self.strength}
        if self.kind.random:
            # The label is part of the seed, so that two edits of one photo use different random numbers.
            arguments["rng"] = np.random.default_rng([seed, zlib.crc32(self.label.encode())])
        if self.kind.takes_surroundings:
            arguments["surroundings"] = surroundings
        neutral = self.strength is not None and self.strength == self.kind.neutral
        result = image.copy() if neutral else self.kind.function(image, **arguments)
        # Pillow keeps some of the file's metadata in some cases; an orientation tag would rotate the copy again.
        result.info = {}
        return result


def parse(label: str) -> Edit:
    """The edit of a label: `contrast-0.5`, `rotation--30`, `meme`, `rotated-fragment-35`."""
    # Names may contain dashes: the longest name that the label begins with.
    name = max((name for name in KINDS if f"{label}-".startswith(f"{name}-")), key=len, default=label.partition("-")[0])
    text = label.removeprefix(name).removeprefix("-")
    _kind(name)
    try:
        strength = float(text) if label != name else None
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


@identity.differentiable
def _identity(views: Views) -> Views:
    return views
