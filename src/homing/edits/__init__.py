"""Edits of photos by name: `parse("contrast-0.5")(image, seed=0)`, and their differentiable versions on batches.

A module without a leading underscore holds a family of edits, the exact and the differentiable version side by side.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from homing._imports import load_entry_points
from homing.edits._registry import KINDS, Edit, Kind, edit, parse
from homing.edits._surroundings import GENERATED, Surroundings
from homing.edits._views import Views
from homing.edits._wild import WILD as _WILD
from homing.edits.mixed import Ranges, random_edits, sample_edits

__all__ = [
    "GENERATED",
    "KINDS",
    "PAPER",
    "SWEEPS",
    "WILD",
    "Edit",
    "Kind",
    "Ranges",
    "Surroundings",
    "Views",
    "edit",
    "parse",
    "random_edits",
    "sample_edits",
]


def __dir__() -> list[str]:
    return sorted(__all__)


# Importing a module registers its edits.
for _module in iter_modules(__path__):
    if not _module.name.startswith("_"):
        import_module(f"{__name__}.{_module.name}")


def _sweep(name: str, strengths: list[float] | range) -> tuple[Edit, ...]:
    return tuple(Edit(name, strength) for strength in strengths)


def _tenths(first: int, last: int) -> list[float]:
    """Tenths from first to last; dividing each, instead of adding steps, gives exactly 0.3."""
    return [number / 10 for number in range(first, last + 1)]


_PAPER = """
    identity contrast-0.5 contrast-2.0 brightness-0.5 brightness-2.0 hue-0.2 blur-2.0 jpeg-50 rotation-25 rotation-90
    crop-0.5 resize-0.5 meme random
"""
PAPER: tuple[Edit, ...] = tuple(parse(label) for label in _PAPER.split())
"""The fourteen edits of the paper's Table 1, in the order of the table's columns."""

WILD: tuple[Edit, ...] = tuple(parse(label) for label in _WILD["labels"])
"""Thirteen edits that people make: fragments, pages, collages, photos of screens. Frozen in `data/wild.toml`."""

SWEEPS: dict[str, tuple[Edit, ...]] = {
    "rotation": _sweep("rotation", range(-90, 91, 10)),
    "crop": _sweep("crop", _tenths(1, 10)),
    "resize": _sweep("resize", _tenths(1, 10)),
    # The paper gives the kernel's size: 3, 5, …, 29 taps. The strength here is sigma = 0.15 · taps + 0.35.
    "blur": _sweep("blur", [(15 * taps + 35) / 100 for taps in range(3, 30, 2)]),
    "jpeg": _sweep("jpeg", range(10, 101, 10)),
    "contrast": _sweep("contrast", _tenths(5, 19)),
    "brightness": _sweep("brightness", _tenths(5, 19)),
    "hue": _sweep("hue", _tenths(-5, 5)),
}
"""Sweeps of the paper's appendix by the edit's name: eight edits, each at a range of strengths."""

# Edits of other packages come last: their modules may use everything above.
load_entry_points("homing.edits")
