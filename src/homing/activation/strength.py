"""Search for the strength of a change whose written file has the target PSNR."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from homing.activation.coroutines import Coroutine
from homing.activation.requests import Candidate, PredictPsnr, WriteCandidate

_TOLERANCE = 0.1  # dB: how far a file may lie above the target PSNR
_MAX_TRIALS = 8
_PREDICTION_TOLERANCE = 0.1  # dB: a prediction this close is refined by the exponent below
_MAX_STRENGTH = 2.0  # as a multiple of the change that the loop gave
_ERROR_EXPONENT = 1.65  # the squared error of JPEG files grows with strength to this power; 2 without rounding
_MIN_STRENGTH = 0.25  # of that change: a target that is missed here is never met


class _Point(NamedTuple):
    """Strength and PSNR of a written file; the file itself may be too large to keep."""

    strength: float
    psnr: float


def write_at_psnr(
    write: Callable[[float], WriteCandidate],
    target_psnr: float | None,
    change_rms: float | None = None,
    predict: Callable[[float], PredictPsnr] | None = None,
) -> Coroutine[Candidate]:
    """Write at the strength whose file has the target PSNR, or at strength 1 without a target.

    `change_rms`, the RMS of the change, gives the first strength. `predict` requests a prediction of the PSNR of a
    file, after which one file usually suffices.
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
    """The strength predicted to give the target PSNR; the search starts at `strength`."""
    trials: list[_Point] = []
    while len(trials) < _MAX_TRIALS:
        trials.append(_Point(strength, (yield predict(strength))))
        strength = _next_strength(trials, target_psnr) or strength
        if strength == trials[-1].strength or abs(trials[-1].psnr - target_psnr) <= _PREDICTION_TOLERANCE:
            break
    return strength


def _next_strength(trials: Sequence[_Point], target_psnr: float) -> float | None:
    """The strength to try next for the target PSNR; None if no other can be better."""
    # The nearest trial on either side: several strengths may round to the same file.
    above = max((each for each in trials if each.psnr >= target_psnr), key=lambda each: each.strength, default=None)
    below = min((each for each in trials if each.psnr < target_psnr), key=lambda each: each.strength, default=None)
    if above is not None and below is not None:
        # Between two trials the PSNR is about linear in the logarithm of the strength. Bisect if one trial was rounded
        # away entirely, or if the last three trials lie on one side.
        evenly = math.isfinite(above.psnr) and len({each.psnr < target_psnr for each in trials[-3:]}) > 1
        share = (above.psnr - target_psnr) / (above.psnr - below.psnr) if evenly else 0.5
        return float(above.strength * (below.strength / above.strength) ** share)
    # Beyond the trials, the squared error is about that of writing alone plus slope · strength².
    last = trials[-1]
    error, squared = _mse(last.psnr), last.strength**2
    writing, exponent = 0.0, _ERROR_EXPONENT
    if len(trials) > 1:
        other = trials[-2]
        slope = (error - _mse(other.psnr)) / (squared - other.strength**2)
        writing, exponent = max(0.0, error - slope * squared), 2.0
    if writing >= _mse(target_psnr):
        # Changes of equal size round to a whole step or to none: try lower strengths before giving up.
        return last.strength / 2 if last.strength > _MIN_STRENGTH else None
    step = 4.0  # when the change was rounded away
    if error > writing:
        step = min(max(((_mse(target_psnr) - writing) / (error - writing)) ** (1 / exponent), 0.25), 4.0)
    strength = min(step * last.strength, _MAX_STRENGTH)
    return strength if strength != last.strength else None


def _mse(psnr: float) -> float:
    """The mean squared error of a PSNR in dB."""
    return float(10 ** (-psnr / 10))
