"""How strong a change must be for the file it is written to to have a PSNR."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

_AIM = 0.1  # dB: how near above the PSNR asked for a file is brought
_TRIALS = 6
_STRONGEST = 2.0  # times the change the budget first allowed for
_FAINT = 0.25  # of that change: a PSNR that is not met with so little is not met at all


class Written(Protocol):
    """A file that was written with a change of some strength, and measured."""

    @property
    def strength(self) -> float:
        """Times the change."""
        ...

    @property
    def psnr(self) -> float:
        """Of the file, decoded again."""
        ...


File = TypeVar("File", bound=Written)


def at_psnr(write: Callable[[float], File], wanted: float | None) -> File:
    """Write at the strength whose file has the PSNR asked for; at the strength of the change where none is."""
    trials = [write(1.0)]
    if wanted is None:
        return trials[0]
    while not 0 <= trials[-1].psnr - wanted <= _AIM and len(trials) < _TRIALS:
        strength = _next_strength(trials, wanted + _AIM / 2)
        if strength is None:
            break
        trials.append(write(strength))
    met = [each for each in trials if each.psnr >= wanted]
    return min(met, key=lambda each: each.psnr) if met else max(trials, key=lambda each: each.psnr)


def _next_strength(trials: Sequence[Written], wanted: float) -> float | None:
    """The strength to try next for a PSNR; None where no other can be better."""
    above = min((each for each in trials if each.psnr >= wanted), key=lambda each: each.psnr, default=None)
    below = max((each for each in trials if each.psnr < wanted), key=lambda each: each.psnr, default=None)
    if above is not None and below is not None:
        # Between two trials the PSNR falls about evenly with the logarithm of the strength; where one of them was all
        # rounded away, nobody knows how.
        share = (above.psnr - wanted) / (above.psnr - below.psnr) if math.isfinite(above.psnr) else 0.5
        return float(above.strength * (below.strength / above.strength) ** share)
    # Outside of them the squared error is about that of writing alone plus slope · strength².
    last = trials[-1]
    error, squared = _error(last.psnr), last.strength**2
    writing = 0.0
    if len(trials) > 1:
        other = trials[-2]
        slope = (error - _error(other.psnr)) / (squared - other.strength**2)
        writing = max(0.0, error - slope * squared)
    if writing >= _error(wanted):
        # Where all pixels move by about the same, rounding makes it a whole step or none: look lower before giving up.
        return last.strength / 2 if last.strength > _FAINT else None
    step = 4.0  # where so little is moved that it is rounded away
    if error > writing:
        step = min(max(math.sqrt((_error(wanted) - writing) / (error - writing)), 0.25), 4.0)
    strength = min(step * last.strength, _STRONGEST)
    return strength if strength != last.strength else None


def _error(psnr: float) -> float:
    """The mean squared error that a PSNR in dB stands for."""
    return float(10 ** (-psnr / 10))
