"""From a change of pixels to bytes that may be released: written, decoded again, measured, accepted or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from torch import Tensor

from homing.activation.strength import at_psnr
from homing.codebooks import Codebook
from homing.extractors import Extractor, describe
from homing.objectives import objective_for
from homing.perception import Budget, Quality, measure
from homing.perception.quality import psnr
from homing.photo import Photo

_LOWER = 1e-3  # the share by which the objective must fall: more than rounding of the network's arithmetic
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
    loss_before: float  # what the objective of the codebook's family says of the original, and of what is released
    loss_after: float


@dataclass(frozen=True)
class _Trial:
    """One way to write the photo, measured on its bytes."""

    data: bytes
    strength: float
    psnr: float
    loss: float
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
        margin: bool = False,
    ) -> None:
        self.photo, self.view, self.change, self.descriptor = photo, view, change, descriptor
        self.extractor, self.codebook = extractor, codebook
        self.code = codebook.encode(descriptor[None])[0]
        self.cell = int(codebook.cells(descriptor[None]))
        self.objective = objective_for(codebook, descriptor[None], margin=margin)
        self.loss_before = float(self.objective(descriptor[None]))

    def decide(self, budget: Budget, format: str | None = None) -> Activation:
        """The first way of writing the photo that helps and keeps the budget; else the photo as it was."""
        refusal = ""
        for trial, note in self._ways(budget, format):
            refusal = self._refuse(trial, budget)
            if not refusal:
                return self._activation(trial.data, "activated", note, trial.loss)
        unmoved = self.photo.data if format is None else self.photo.encode(format, finer=True)
        return self._activation(unmoved, "unchanged", refusal, self.loss_before)

    def _ways(self, budget: Budget, format: str | None) -> Iterator[tuple[_Trial, str | None]]:
        """Ways to write the photo, the most wanted first: its own tables, finer ones, then gentler changes."""
        plain = self._at_budget(budget, format, finer=False)
        if self.loss_before - plain.loss >= _SURVIVES * self._gain_unwritten(plain.psnr):
            yield plain, None
        lossy = self._trial(plain.strength, format, finer=True).data != plain.data
        best = self._at_budget(budget, format, finer=True) if lossy else plain
        note = "written finer than usual, the gain did not survive otherwise" if lossy else None
        yield best, note
        for share in _GENTLER:
            gentler = f"moved by {share:g} of what the budget allows"
            yield self._trial(share * best.strength, format, finer=lossy), f"{note}; {gentler}" if note else gentler

    def _gain_unwritten(self, psnr: float) -> float:
        """How much the change would gain at this PSNR, were it not for writing."""
        size = float(self.change.square().mean().sqrt())
        strength = 10 ** (-psnr / 20) / size if size else 0.0
        moved = describe(self.extractor, [(self.view + strength * self.change).clamp(0, 1)])
        return self.loss_before - float(self.objective(moved))

    def _at_budget(self, budget: Budget, format: str | None, *, finer: bool) -> _Trial:
        """Write at the strength whose file has the PSNR asked for (or at the strength asked for)."""
        return at_psnr(partial(self._trial, format=format, finer=finer), budget.psnr)

    def _trial(self, strength: float, format: str | None, *, finer: bool) -> _Trial:
        data = self.photo.moved(strength * self.change).encode(format, finer)
        view = Photo.decode(data, self.photo.name).view()
        descriptor = describe(self.extractor, [view])
        return _Trial(
            data=data,
            strength=strength,
            psnr=psnr(self.view, view),
            loss=float(self.objective(descriptor)),
            same_cell=int(self.codebook.cells(descriptor)) == self.cell,
        )

    def _refuse(self, trial: _Trial, budget: Budget) -> str:
        """Why this trial may not be released as activated; empty when it may."""
        if budget.psnr is not None and trial.psnr < budget.psnr:
            return (
                f"the written file has {trial.psnr:.1f} dB, under the {budget.psnr:g} dB asked for; "
                "try a format without loss (--format png) or a lower PSNR"
            )
        if not trial.same_cell:
            return "moving its pixels takes it out of its own cell"
        if trial.loss > self.loss_before - _LOWER * abs(self.loss_before):
            return "moving its pixels within the budget brings it no nearer to its place in the index"
        return ""

    def _activation(
        self, data: bytes, state: Literal["activated", "unchanged"], reason: str | None, after: float
    ) -> Activation:
        quality = measure(self.view, Photo.decode(data, self.photo.name).view())
        return Activation(self.photo, data, state, reason, quality, self.descriptor, self.code, self.loss_before, after)
