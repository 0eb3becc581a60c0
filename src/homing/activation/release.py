"""From a change of pixels to bytes that may be released: written, decoded again, measured, accepted or not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from homing.activation.courses import Course
from homing.activation.forecast import Forecast
from homing.activation.recipe import Recipe
from homing.activation.requests import Foretell, Judge, Measure, Stand, Standing, Trial, Write
from homing.activation.strength import at_psnr
from homing.perception import Quality
from homing.perception.quality import UNCHANGED
from homing.photo import QUICKER, Photo, format_name

LOWER = 1e-3  # the share by which the objective must fall: more than rounding of the network's arithmetic
_GENTLER = (0.5, 0.25)
_SURVIVES = 0.5  # share of the gain that must be left after writing, or finer tables are tried


@dataclass(frozen=True)
class Activation:
    """What came of one photo: the bytes to release, and how they were found to be."""

    sha256: str
    """Of the photo's own file."""
    data: bytes
    state: Literal["activated", "unchanged"]
    reason: str | None
    quality: Quality
    descriptor: np.ndarray
    descriptor_after: np.ndarray | None
    """Of what is released, where it is activated."""
    code: np.ndarray
    loss_before: float  # what the recipe's objective says of the original, and of what is released
    loss_after: float


@dataclass(frozen=True, eq=False)
class Release:
    """The way one photo goes from its change to a file.

    View and change, (3, H, W), lie on one device: what is measured is measured there.
    """

    photo: Photo
    view: Tensor
    change: Tensor
    loudness: float
    """Of the change."""
    original: Standing
    code: np.ndarray
    judge: Judge
    place: int
    """Of the photo in its batch."""
    recipe: Recipe
    format: str | None = None

    def course(self) -> Course[Activation]:
        """The first way of writing the photo that helps and keeps the budget; else the photo as it was."""
        trial: Trial = yield from self._at_budget(finer=False)
        standing, unwritten = yield self._stand(trial.seen, self._unwritten(trial.psnr))
        refusal = self._refuse(trial, standing)
        if not refusal and self._gain(standing) >= _SURVIVES * self._gain(unwritten):
            return (yield from self._activated(trial, standing, None))
        finer = gentler = None
        lossy: bool = yield from self._may_be_finer(trial)
        if lossy:
            finer = "written finer than usual, the gain did not survive otherwise"
            trial = yield from self._at_budget(finer=True)
            (standing,) = yield self._stand(trial.seen)
            refusal = self._refuse(trial, standing)
        full = trial.strength
        for share in _GENTLER:
            if not refusal:
                break
            gentler = f"moved by {share:g} of what the budget allows"
            trial = yield self._write(finer=lossy)(share * full)
            (standing,) = yield self._stand(trial.seen)
            refusal = self._refuse(trial, standing)
        if not refusal:
            return (yield from self._activated(trial, standing, "; ".join(filter(None, (finer, gentler))) or None))
        if self.format is None:
            return self._activation(self.photo.data, "unchanged", refusal, UNCHANGED, self.original)
        trial = yield self._write(finer=True, quick=False)(0.0)
        quality: Quality = yield Measure(self.view, trial.seen)
        return self._activation(trial.data, "unchanged", refusal, quality, self.original)

    def _at_budget(self, *, finer: bool) -> Course[Trial]:
        """Write at the strength whose file has the PSNR asked for (or at the strength asked for)."""
        forecast = None if self._wanted is None else Forecast.of(self.photo, self.view, self.change, self.format, finer)
        foretell = None if forecast is None else partial(Foretell, forecast)
        return at_psnr(self._write(finer), self._wanted, self.loudness, foretell)

    def _may_be_finer(self, trial: Trial) -> Course[bool]:
        """Whether the format can keep more of the change than it kept in this trial."""
        usual, finest = (self.photo.coding(self.format, finer) for finer in (False, True))
        if usual is not None:
            return usual != finest
        again: Trial = yield self._write(finer=True)(trial.strength)
        return again.data != trial.data

    def _write(self, finer: bool, quick: bool = True) -> partial[Write]:
        """What asks for a file, given a strength."""
        return partial(Write, self.photo, self.view, self.change, self.format, finer, quick=quick)

    def _stand(self, *views: Tensor) -> Stand:
        return Stand(self.judge, self.place, [self.judge.extractor.resize(view) for view in views])

    @property
    def _wanted(self) -> float | None:
        """The PSNR to keep, if one is asked for."""
        return self.recipe.budget.psnr

    def _unwritten(self, psnr: float) -> Tensor:
        """What would be seen at this PSNR were it not for writing."""
        strength = 10 ** (-psnr / 20) / self.loudness if self.loudness else 0.0
        return (self.view + strength * self.change).clamp(0, 1)

    def _gain(self, standing: Standing) -> float:
        return self.original.loss - standing.loss

    def _refuse(self, trial: Trial, standing: Standing) -> str:
        """Why this trial may not be released as activated; empty when it may."""
        if self._wanted is not None and trial.psnr < self._wanted:
            return (
                f"the written file has {trial.psnr:.1f} dB, under the {self._wanted:g} dB asked for; "
                "try a format without loss (--format png) or a lower PSNR"
            )
        if standing.cell != self.original.cell:
            return "moving its pixels takes it out of its own cell"
        if standing.loss > self.original.loss - LOWER * abs(self.original.loss):
            return "moving its pixels within the budget brings it no nearer to its place in the index"
        return ""

    def _activated(self, trial: Trial, standing: Standing, note: str | None) -> Course[Activation]:
        quality: Quality = yield Measure(self.view, trial.seen)
        data = trial.data
        if format_name(self.format or self.photo.format) in QUICKER:
            smaller: Trial = yield self._write(trial.finer, quick=False)(trial.strength)
            data = smaller.data if torch.equal(smaller.seen, trial.seen) else data
        return self._activation(data, "activated", note, quality, standing)

    def _activation(
        self, data: bytes, state: Literal["activated", "unchanged"], reason: str | None, quality: Quality, now: Standing
    ) -> Activation:
        return Activation(
            sha256=self.photo.sha256,
            data=data,
            state=state,
            reason=reason,
            quality=quality,
            descriptor=self.original.descriptor.numpy(),
            descriptor_after=now.descriptor.numpy() if state == "activated" else None,
            code=self.code,
            loss_before=self.original.loss,
            loss_after=now.loss,
        )
