"""From a change of pixels to bytes that may be released: written, decoded again, measured, accepted or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from homing.activation.forecast import Forecast
from homing.activation.strength import at_psnr
from homing.codebooks import Codebook
from homing.errors import PhotoError
from homing.extractors import Extractor, describe
from homing.objectives import Objective, objective_for
from homing.perception import Budget, Quality, measure
from homing.perception.quality import psnr
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


class _Standing(NamedTuple):
    """Where something stands in the index: its descriptor (D,), its cell, and what the objective says."""

    descriptor: Tensor
    cell: int
    loss: float


def _standings(descriptors: Tensor, objective: Objective, codebook: Codebook) -> list[_Standing]:
    """Of (B, D) descriptors of the photos that the objective is made for."""
    of_each = zip(descriptors, codebook.cells(descriptors).tolist(), objective(descriptors).tolist(), strict=True)
    return [_Standing(*each) for each in of_each]


@dataclass(eq=False)
class _Trial:
    """One way to write the photo, measured on its bytes; only one that may be released is described."""

    release: Release
    data: bytes
    seen: Tensor
    """The view of what was written."""
    strength: float
    psnr: float

    @cached_property
    def square(self) -> Tensor:
        """What the network sees of it."""
        return self.release.extractor.resize(self.seen)

    @cached_property
    def standing(self) -> _Standing:
        return self.release.standing(describe(self.release.extractor, [self.square]))

    def smaller(self, format: str | None, finer: bool) -> bytes:
        """The file with more effort spent on its size, if that is known to leave its pixels alone."""
        photo = self.release.photo
        if format_name(format or photo.format) not in QUICKER:
            return self.data
        data = self.release.moved(self.strength).encode(format, finer)
        return data if torch.equal(self.release.seen(data), self.seen) else self.data


class Release:
    """The way one photo goes from its change to a file; `descriptor` is the original's, (D,).

    View and change, (3, H, W), lie on one device: what is measured is measured there.
    """

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
        self.extractor, self.codebook, self.margin = extractor, codebook, margin

    def begin(self, budget: Budget, format: str | None = None) -> None:
        """Write the photo in the way that is wanted most: `decide` goes on from there."""
        self._plain = self._at_budget(budget, format, finer=False)

    def squares(self) -> list[Tensor]:
        """What the network sees of the file just written, and would see were it not for writing."""
        strength = 10 ** (-self._plain.psnr / 20) / self._size if self._size else 0.0
        unwritten = (self.view + strength * self.change).clamp(0, 1)
        return [self._plain.square, self.extractor.resize(unwritten)]

    def hear(self, original: _Standing, written: _Standing, unwritten: _Standing) -> None:
        """Where the photo stands, and where what these squares show does."""
        self._original, self._plain.standing, self._unwritten = original, written, unwritten

    def standing(self, descriptor: Tensor) -> _Standing:
        """Of another way to write this photo, (1, D)."""
        objective = objective_for(self.codebook, self.descriptor[None], margin=self.margin)
        return _standings(descriptor, objective, self.codebook)[0]

    def decide(self, budget: Budget, format: str | None = None) -> Activation:
        """The first way of writing the photo that helps and keeps the budget; else the photo as it was."""
        refusal = ""
        for trial, finer, note in self._ways(budget, format):
            refusal = self._refuse(trial, budget)
            if not refusal:
                data = trial.smaller(format, finer)
                return self._activation(data, "activated", note, trial.seen, trial.standing)
        data = self.photo.data if format is None else self.photo.encode(format, finer=True)
        seen = self.view if format is None else self.seen(data)
        return self._activation(data, "unchanged", refusal, seen, self._original)

    def _ways(self, budget: Budget, format: str | None) -> Iterator[tuple[_Trial, bool, str | None]]:
        """Ways to write the photo, finer or not, the most wanted first: its own tables, finer ones, gentler changes."""
        plain = self._plain
        before = self._original.loss
        if not self._refuse(plain, budget) and before - plain.standing.loss >= _SURVIVES * (
            before - self._unwritten.loss
        ):
            yield plain, False, None
        lossy = self.moved(plain.strength).encode(format, finer=True, quick=True) != plain.data
        best = self._at_budget(budget, format, finer=True) if lossy else plain
        note = "written finer than usual, the gain did not survive otherwise" if lossy else None
        yield best, lossy, note
        for share in _GENTLER:
            gentler = f"moved by {share:g} of what the budget allows"
            trial = self._trial(share * best.strength, format, finer=lossy)
            yield trial, lossy, f"{note}; {gentler}" if note else gentler

    def _at_budget(self, budget: Budget, format: str | None, *, finer: bool) -> _Trial:
        """Write at the strength whose file has the PSNR asked for (or at the strength asked for)."""
        foretell = Forecast.of(self.photo, self.view, self.change, format, finer) if budget.psnr is not None else None
        return at_psnr(partial(self._trial, format=format, finer=finer), budget.psnr, self._size, foretell)

    @cached_property
    def _size(self) -> float:
        """The root of the change's mean square."""
        return float(self.change.square().mean().sqrt())

    def _trial(self, strength: float, format: str | None, *, finer: bool) -> _Trial:
        data = self.moved(strength).encode(format, finer, quick=True)
        seen = self.seen(data)
        return _Trial(self, data, seen, strength, psnr(self.view, seen))

    def moved(self, strength: float) -> Photo:
        """The photo with so many times the change."""
        return self.photo.moved(strength * self.change)

    def seen(self, data: bytes) -> Tensor:
        """The view of a file that the photo was written to."""
        return Photo.decode(data, self.photo.name).view(self.view.device)

    def _refuse(self, trial: _Trial, budget: Budget) -> str:
        """Why this trial may not be released as activated; empty when it may."""
        if budget.psnr is not None and trial.psnr < budget.psnr:
            return (
                f"the written file has {trial.psnr:.1f} dB, under the {budget.psnr:g} dB asked for; "
                "try a format without loss (--format png) or a lower PSNR"
            )
        if trial.standing.cell != self._original.cell:
            return "moving its pixels takes it out of its own cell"
        if trial.standing.loss > self._original.loss - LOWER * abs(self._original.loss):
            return "moving its pixels within the budget brings it no nearer to its place in the index"
        return ""

    def _activation(
        self,
        data: bytes,
        state: Literal["activated", "unchanged"],
        reason: str | None,
        seen: Tensor,
        standing: _Standing,
    ) -> Activation:
        return Activation(
            sha256=self.photo.sha256,
            data=data,
            state=state,
            reason=reason,
            quality=measure(self.view, seen),
            descriptor=self.descriptor.numpy(),
            descriptor_after=standing.descriptor.numpy() if state == "activated" else None,
            code=self.codebook.encode(self.descriptor[None])[0],
            loss_before=self._original.loss,
            loss_after=standing.loss,
        )


def released(releases: Sequence[Release], budget: Budget, format: str | None = None) -> list[Activation | PhotoError]:
    """What becomes of each photo, or why it cannot be written.

    What is written first is described and judged together, which is twice as fast as one by one.
    """
    failures: dict[int, PhotoError] = {}
    for place, release in enumerate(releases):
        try:
            release.begin(budget, format)
        except PhotoError as error:
            failures[place] = error
    _judge([release for place, release in enumerate(releases) if place not in failures])
    results: list[Activation | PhotoError] = []
    for place, release in enumerate(releases):
        try:
            results.append(failures[place] if place in failures else release.decide(budget, format))
        except PhotoError as error:
            results.append(error)
    return results


def _judge(releases: Sequence[Release]) -> None:
    """Tell photos of one batch, for one codebook, where they stand: as they were, written, and were it not for that."""
    if not releases:
        return
    extractor, codebook, margin = releases[0].extractor, releases[0].codebook, releases[0].margin
    originals = torch.stack([release.descriptor for release in releases])
    objective = objective_for(codebook, originals, margin=margin)
    seen = describe(extractor, [square for release in releases for square in release.squares()])
    standings = [_standings(each, objective, codebook) for each in (originals, seen[0::2], seen[1::2])]
    for release, of_each in zip(releases, zip(*standings, strict=True), strict=True):
        release.hear(*of_each)
