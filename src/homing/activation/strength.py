"""How strong a change must be for the file it is written to to have a PSNR."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from homing.activation.courses import Course
from homing.activation.requests import Foretell, Trial, Write

_AIM = 0.1  # dB: how near above the PSNR asked for a file is brought
_TRIALS = 8
_NEAR = 0.1  # dB: from here a strength is told well enough by the growth below
_STRONGEST = 2.0  # times the change the budget first allowed for
_GROWTH = 1.65  # the power of the strength that the squared error of JPEG files grows with; 2 where nothing is rounded
_FAINT = 0.25  # of that change: a PSNR that is not met with so little is not met at all


class _Point(NamedTuple):
    """What is remembered of a file that was written: a photo may be too large to keep several of it."""

    strength: float
    psnr: float


def at_psnr(
    write: Callable[[float], Write],
    wanted: float | None,
    loudness: float | None = None,
    foretell: Callable[[float], Foretell] | None = None,
) -> Course[Trial]:
    """Write at the strength whose file has the PSNR asked for; at the strength of the change where none is.

    Where it is known how loud the change is, the first strength tried is a better guess. `foretell` asks for the PSNR
    that a file will have: then the first file is likely to be the last.
    """
    best: Trial
    file: Trial
    if wanted is None:
        best = yield write(1.0)
        return best
    first = min(math.sqrt(_error(wanted)) / loudness, _STRONGEST) if loudness else 1.0
    if foretell and loudness:
        first = yield from _foretold(foretell, first, wanted + _AIM / 2)
    best = file = yield write(first)
    trials = [_Point(file.strength, file.psnr)]
    while not 0 <= file.psnr - wanted <= _AIM and len(trials) < _TRIALS:
        strength = _next_strength(trials, wanted + _AIM / 2)
        if strength is None:
            break
        file = yield write(strength)
        trials.append(_Point(file.strength, file.psnr))
        best = min(best, file, key=lambda each: (each.psnr < wanted, abs(each.psnr - wanted)))
    return best


def _foretold(foretell: Callable[[float], Foretell], strength: float, wanted: float) -> Course[float]:
    """The strength to begin with for a PSNR, given where to look first."""
    trials: list[_Point] = []
    while len(trials) < _TRIALS:
        trials.append(_Point(strength, (yield foretell(strength))))
        strength = _next_strength(trials, wanted) or strength
        if strength == trials[-1].strength or abs(trials[-1].psnr - wanted) <= _NEAR:
            break
    return strength


def _next_strength(trials: Sequence[_Point], wanted: float) -> float | None:
    """The strength to try next for a PSNR; None where no other can be better."""
    # The nearest on either side: several strengths may all be rounded away, or to the same step.
    above = max((each for each in trials if each.psnr >= wanted), key=lambda each: each.strength, default=None)
    below = min((each for each in trials if each.psnr < wanted), key=lambda each: each.strength, default=None)
    if above is not None and below is not None:
        # Between two trials the PSNR falls about evenly with the logarithm of the strength; where one of them was all
        # rounded away, or the last three fell on one side, nobody knows how.
        evenly = math.isfinite(above.psnr) and len({each.psnr < wanted for each in trials[-3:]}) > 1
        share = (above.psnr - wanted) / (above.psnr - below.psnr) if evenly else 0.5
        return float(above.strength * (below.strength / above.strength) ** share)
    # Outside of them the squared error is about that of writing alone plus slope · strength².
    last = trials[-1]
    error, squared = _error(last.psnr), last.strength**2
    writing, growth = 0.0, _GROWTH
    if len(trials) > 1:
        other = trials[-2]
        slope = (error - _error(other.psnr)) / (squared - other.strength**2)
        writing, growth = max(0.0, error - slope * squared), 2.0
    if writing >= _error(wanted):
        # Where all pixels move by about the same, rounding makes it a whole step or none: look lower before giving up.
        return last.strength / 2 if last.strength > _FAINT else None
    step = 4.0  # where so little is moved that it is rounded away
    if error > writing:
        step = min(max(((_error(wanted) - writing) / (error - writing)) ** (1 / growth), 0.25), 4.0)
    strength = min(step * last.strength, _STRONGEST)
    return strength if strength != last.strength else None


def _error(psnr: float) -> float:
    """The mean squared error that a PSNR in dB stands for."""
    return float(10 ** (-psnr / 10))
