"""How strong a change must be for the file it is written to to have a PSNR."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from homing.activation.coroutines import Coroutine
from homing.activation.requests import Candidate, PredictPsnr, WriteCandidate

_TOLERANCE = 0.1  # dB: how near above the PSNR asked for a file is brought
_MAX_TRIALS = 8
_PREDICTION_TOLERANCE = 0.1  # dB: from here a strength is told well enough by the exponent below
_MAX_STRENGTH = 2.0  # times the change the budget first allowed for
_ERROR_EXPONENT = (
    1.65  # the power of the strength that the squared error of JPEG files grows with; 2 where nothing is rounded
)
_MIN_STRENGTH = 0.25  # of that change: a PSNR that is not met with so little is not met at all


class _Point(NamedTuple):
    """What is remembered of a file that was written: a photo may be too large to keep several of it."""

    strength: float
    psnr: float


def write_at_psnr(
    write: Callable[[float], WriteCandidate],
    target_psnr: float | None,
    change_rms: float | None = None,
    predict: Callable[[float], PredictPsnr] | None = None,
) -> Coroutine[Candidate]:
    """Write at the strength whose file has the PSNR asked for; at the strength of the change where none is.

    Where it is known how loud the change is, the first strength tried is a better guess. `predict` asks for the PSNR
    that a file will have: then the first file is likely to be the last.
    """
    best: Candidate
    file: Candidate
    if target_psnr is None:
        best = yield write(1.0)
        return best
    first = min(math.sqrt(_mse(target_psnr)) / change_rms, _MAX_STRENGTH) if change_rms else 1.0
    if predict and change_rms:
        first = yield from _predicted_strength(predict, first, target_psnr + _TOLERANCE / 2)
    best = file = yield write(first)
    trials = [_Point(file.strength, file.psnr)]
    while not 0 <= file.psnr - target_psnr <= _TOLERANCE and len(trials) < _MAX_TRIALS:
        strength = _next_strength(trials, target_psnr + _TOLERANCE / 2)
        if strength is None:
            break
        file = yield write(strength)
        trials.append(_Point(file.strength, file.psnr))
        best = min(best, file, key=lambda each: (each.psnr < target_psnr, abs(each.psnr - target_psnr)))
    return best


def _predicted_strength(
    predict: Callable[[float], PredictPsnr], strength: float, target_psnr: float
) -> Coroutine[float]:
    """The strength to begin with for a PSNR, given where to look first."""
    trials: list[_Point] = []
    while len(trials) < _MAX_TRIALS:
        trials.append(_Point(strength, (yield predict(strength))))
        strength = _next_strength(trials, target_psnr) or strength
        if strength == trials[-1].strength or abs(trials[-1].psnr - target_psnr) <= _PREDICTION_TOLERANCE:
            break
    return strength


def _next_strength(trials: Sequence[_Point], target_psnr: float) -> float | None:
    """The strength to try next for a PSNR; None where no other can be better."""
    # The nearest on either side: several strengths may all be rounded away, or to the same step.
    above = max((each for each in trials if each.psnr >= target_psnr), key=lambda each: each.strength, default=None)
    below = min((each for each in trials if each.psnr < target_psnr), key=lambda each: each.strength, default=None)
    if above is not None and below is not None:
        # Between two trials the PSNR falls about evenly with the logarithm of the strength; where one of them was all
        # rounded away, or the last three fell on one side, nobody knows how.
        evenly = math.isfinite(above.psnr) and len({each.psnr < target_psnr for each in trials[-3:]}) > 1
        share = (above.psnr - target_psnr) / (above.psnr - below.psnr) if evenly else 0.5
        return float(above.strength * (below.strength / above.strength) ** share)
    # Outside of them the squared error is about that of writing alone plus slope · strength².
    last = trials[-1]
    error, squared = _mse(last.psnr), last.strength**2
    writing, exponent = 0.0, _ERROR_EXPONENT
    if len(trials) > 1:
        other = trials[-2]
        slope = (error - _mse(other.psnr)) / (squared - other.strength**2)
        writing, exponent = max(0.0, error - slope * squared), 2.0
    if writing >= _mse(target_psnr):
        # Where all pixels move by about the same, rounding makes it a whole step or none: look lower before giving up.
        return last.strength / 2 if last.strength > _MIN_STRENGTH else None
    step = 4.0  # where so little is moved that it is rounded away
    if error > writing:
        step = min(max(((_mse(target_psnr) - writing) / (error - writing)) ** (1 / exponent), 0.25), 4.0)
    strength = min(step * last.strength, _MAX_STRENGTH)
    return strength if strength != last.strength else None


def _mse(psnr: float) -> float:
    """The mean squared error that a PSNR in dB stands for."""
    return float(10 ** (-psnr / 10))
