"""Sweeps of the paper's appendix: eight edits, each at a range of strengths."""

from __future__ import annotations

from collections.abc import Iterable

from homing.edits.registry import Edit


def _sweep(name: str, strengths: Iterable[float]) -> tuple[Edit, ...]:
    return tuple(Edit(name, strength) for strength in strengths)


def _tenths(first: int, last: int) -> list[float]:
    """Tenths from first to last; dividing each, instead of adding steps, gives exactly 0.3."""
    return [number / 10 for number in range(first, last + 1)]


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
"""Edits of each sweep, by the edit's name."""
