"""From a change of pixels to bytes that may be released: written, decoded again, measured, accepted or not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from torch import Tensor

from homing.codebooks import Codebook
from homing.extractors import Extractor, describe
from homing.perception import JND, Quality, measure
from homing.perception.quality import psnr
from homing.photo import Photo

_AIM = 0.05  # dB: how near to the PSNR asked for the strength is brought
_SLACK = 0.1  # dB: how far below it a written file may still lie
_TRIALS = 6
_STRONGEST = 2.0  # times the change the budget first allowed for
_GENTLER = (0.5, 0.25)
_SURVIVES = 0.5  # share of the gain that must be left after writing, or finer tables are tried


@dataclass(frozen=True)
class Activation:
    """What came of one photo: the bytes to release, and how they were found to be."""

    photo: Photo
    data: bytes
    state: Literal["activated", "unchanged"]
    reason: str | None
    quality: Quality
    descriptor: Tensor
    code: np.ndarray
    distance_before: float
    distance_after: float


@dataclass(frozen=True)
class _Trial:
    """One way to write the photo, measured on its bytes."""

    data: bytes
    view: Tensor
    strength: float
    psnr: float
    distance: float
    same_cell: bool


class Release:
    """The way one photo goes from its change to a file; `descriptor` is the original's, (D,)."""

    def __init__(
        self,
        photo: Photo,
        view: Tensor,
        change: Tensor,
        descriptor: Tensor,
        *,
        extractor: Extractor,
        codebook: Codebook,
    ) -> None:
        self.photo, self.view, self.change, self.descriptor = photo, view, change, descriptor
        self.extractor, self.codebook = extractor, codebook
        self.code = codebook.encode(descriptor[None])[0]
        self.target = codebook.decode(self.code[None])[0]
        self.cell = int(codebook.cells(descriptor[None]))
        self.distance_before = float((descriptor - self.target).norm())

    def decide(self, budget: JND, format: str | None = None) -> Activation:
        """The first way of writing the photo that helps and keeps the budget; else the photo as it was."""
        refusal = ""
        for trial, note in self._ways(budget, format):
            refusal = self._refuse(trial, budget)
            if not refusal:
                return self._activation(trial.data, "activated", note, measure(self.view, trial.view), trial.distance)
        unmoved = self.photo.data if format is None else self.photo.encode(format)
        same = measure(self.view, Photo.decode(unmoved, self.photo.name).view())
        return self._activation(unmoved, "unchanged", refusal, same, self.distance_before)

    def _ways(self, budget: JND, format: str | None) -> Iterator[tuple[_Trial, str | None]]:
        """Ways to write the photo, the most wanted first: its own tables, finer ones, then gentler changes."""
        own = self._at_budget(budget, format, finer=False)
        if self.distance_before - own.distance >= _SURVIVES * self._gain_unwritten(own.psnr):
            yield own, None
        finer = self._at_budget(budget, format, finer=True)
        if finer.data == own.data:
            yield own, None  # a format without loss has nothing finer
        else:
            yield finer, "written finer than the original: the gain does not survive its own compression"
        for share in _GENTLER:
            yield self._trial(share * finer.strength, format, finer=True), f"moved gentler, by {share:g} of the budget"

    def _gain_unwritten(self, psnr: float) -> float:
        """How much nearer to its code the change would bring the photo at this PSNR, were it not for writing."""
        strength = 10 ** (-psnr / 20) / float(self.change.square().mean().sqrt())
        moved = describe(self.extractor, [(self.view + strength * self.change).clamp(0, 1)])[0]
        return self.distance_before - float((moved - self.target).norm())

    def _at_budget(self, budget: JND, format: str | None, *, finer: bool) -> _Trial:
        """Write at the strength whose file has the PSNR asked for (or at the strength asked for)."""
        trial = self._trial(1.0, format, finer=finer)
        wanted = budget.psnr
        if wanted is None:
            return trial
        trials = [trial]
        while abs(trials[-1].psnr - wanted) > _AIM and len(trials) < _TRIALS:
            trials.append(self._trial(_next_strength(trials, wanted), format, finer=finer))
        allowed = [each for each in trials if each.psnr >= wanted - _SLACK]
        return min(allowed or trials, key=lambda each: abs(each.psnr - wanted))

    def _trial(self, strength: float, format: str | None, *, finer: bool) -> _Trial:
        data = self.photo.moved(strength * self.change).encode(format, finer)
        view = Photo.decode(data, self.photo.name).view()
        descriptor = describe(self.extractor, [view])
        return _Trial(
            data=data,
            view=view,
            strength=strength,
            psnr=psnr(self.view, view),
            distance=float((descriptor[0] - self.target).norm()),
            same_cell=int(self.codebook.cells(descriptor)) == self.cell,
        )

    def _refuse(self, trial: _Trial, budget: JND) -> str:
        """Why this trial may not be released as activated; empty when it may."""
        if budget.psnr is not None and trial.psnr < budget.psnr - _SLACK:
            return f"the written file has {trial.psnr:.1f} dB, under the {budget.psnr:g} dB asked for"
        if not trial.same_cell:
            return "moving its pixels takes it out of its own cell"
        if trial.distance >= self.distance_before:
            return "moving its pixels within the budget brings it no nearer to its code"
        return ""

    def _activation(
        self, data: bytes, state: Literal["activated", "unchanged"], reason: str | None, quality: Quality, after: float
    ) -> Activation:
        return Activation(
            self.photo, data, state, reason, quality, self.descriptor, self.code, self.distance_before, after
        )


def _next_strength(trials: list[_Trial], wanted: float) -> float:
    """The strength to try next for a PSNR, which falls about evenly with the logarithm of the strength."""
    last = trials[-1]
    above = min((each for each in trials if each.psnr >= wanted), key=lambda each: each.psnr, default=None)
    below = max((each for each in trials if each.psnr < wanted), key=lambda each: each.psnr, default=None)
    if above is None or below is None or math.isinf(above.psnr):
        step = min(max(10 ** ((last.psnr - wanted) / 20), 0.25), 4.0)
        return min(last.strength * step, _STRONGEST)
    share = (above.psnr - wanted) / (above.psnr - below.psnr)
    return float(above.strength * (below.strength / above.strength) ** share)
