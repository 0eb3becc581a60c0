"""The release check: write the changed photo, decode the file again, measure it, and accept or reject it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from homing._io.files import report_write_errors, write_atomically
from homing.activation.coroutines import Coroutine
from homing.activation.jpeg_psnr import JpegPsnr
from homing.activation.recipe import Recipe
from homing.activation.requests import (
    Candidate,
    Evaluator,
    IndexPosition,
    LocateInIndex,
    MeasureQuality,
    PredictPsnr,
    WriteCandidate,
)
from homing.activation.strength import write_at_psnr
from homing.errors import PhotoError
from homing.perception import Quality
from homing.perception.quality import UNCHANGED
from homing.photo import QUICK_FORMATS, Photo, differences, format_name
from homing.photo.files import SUFFIXES, has_suffix_of

MIN_LOSS_DECREASE = 1e-3  # relative decrease required of the loss: more than rounding errors of the network
_WEAKER = (0.5, 0.25)
_MIN_GAIN_KEPT = 0.5  # share of the decrease that must remain after writing; else finer tables are tried


@dataclass(frozen=True)
class Activation:
    """The result for one photo: the bytes to release and what was measured on them."""

    sha256: str
    """SHA-256 of the original file."""
    data: bytes = field(repr=False)
    state: Literal["activated", "unchanged"]
    reason: str | None
    quality: Quality
    descriptor: np.ndarray = field(repr=False)
    descriptor_after: np.ndarray | None = field(repr=False)
    """Descriptor of the released file if it is activated."""
    code: np.ndarray = field(repr=False)
    bytes_before: int
    """Size of the photo's own file."""
    notes: list[str]
    """What was written differently than in the photo's own file, in short sentences."""
    loss_before: float  # the recipe's objective for the original, and for the released file
    loss_after: float

    def image(self) -> Image.Image:
        """The file to release, decoded by Pillow."""
        image = Image.open(BytesIO(self.data))
        image.load()
        return image

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file to release, over one that is there. Its name must end as files of its format do."""
        format = Photo.decode(self.data, os.fspath(path)).format
        if not has_suffix_of(Path(path), format):
            raise PhotoError(
                f"{os.fspath(path)}: the file is {format}, so its name must end in {SUFFIXES[format]}; for another "
                "format, activate the photo with `format`"
            )
        with report_write_errors(Path(path)):
            write_atomically(Path(path), self.data)


@dataclass(frozen=True, eq=False)
class ReleaseCheck:
    """The release check of one photo.

    Image and change (3, H, W) are on one device, on which they are measured.
    """

    photo: Photo
    image: Tensor
    change: Tensor
    change_rms: float
    """RMS of the change."""
    original: IndexPosition
    code: np.ndarray
    evaluator: Evaluator
    index: int
    """Index of the photo in its batch."""
    recipe: Recipe
    format: str | None = None

    def run(self) -> Coroutine[Activation]:
        """The first candidate that lowers the loss within the budget, else the original photo."""
        candidate: Candidate = yield from self._write_at_budget(finer=False)
        position, before_writing = yield self._locate(candidate.decoded, self._before_writing(candidate.psnr))
        rejection = self._rejection_reason(candidate, position)
        if not rejection and self._gain(position) >= _MIN_GAIN_KEPT * self._gain(before_writing):
            return (yield from self._accept(candidate, position, None))
        finer = weaker = None
        lossy: bool = yield from self._can_write_finer(candidate)
        if lossy:
            finer = "written with finer quantization, which keeps more of the change"
            candidate = yield from self._write_at_budget(finer=True)
            (position,) = yield self._locate(candidate.decoded)
            rejection = self._rejection_reason(candidate, position)
        full = candidate.strength
        for share in _WEAKER:
            if not rejection:
                break
            weaker = f"changed by {share:g} of what the budget allows"
            candidate = yield self._write(finer=lossy)(share * full)
            (position,) = yield self._locate(candidate.decoded)
            rejection = self._rejection_reason(candidate, position)
        if not rejection:
            return (yield from self._accept(candidate, position, "; ".join(filter(None, (finer, weaker))) or None))
        return (yield from self.unchanged(rejection))

    def unchanged(self, reason: str) -> Coroutine[Activation]:
        """The original photo in the requested format."""
        if self.format is None:
            return self._make_activation(self.photo.data, "unchanged", reason, UNCHANGED, self.original)
        candidate: Candidate = yield self._write(finer=True, quick=False)(0.0)
        quality: Quality = yield MeasureQuality(self.image, candidate.decoded)
        return self._make_activation(candidate.data, "unchanged", reason, quality, self.original)

    def _write_at_budget(self, *, finer: bool) -> Coroutine[Candidate]:
        """Write at the strength whose file has the target PSNR, or at strength 1 without a target."""
        predictor = (
            None if self._target_psnr is None else JpegPsnr.of(self.photo, self.image, self.change, self.format, finer)
        )
        predict = None if predictor is None else partial(PredictPsnr, predictor)
        return write_at_psnr(self._write(finer), self._target_psnr, self.change_rms, predict)

    def _can_write_finer(self, candidate: Candidate) -> Coroutine[bool]:
        """Whether finer quantization would keep more of the change than this candidate does."""
        usual, finest = (self.photo.jpeg_tables(self.format, finer) for finer in (False, True))
        if usual is not None:
            return usual != finest
        again: Candidate = yield self._write(finer=True)(candidate.strength)
        return again.data != candidate.data

    def _write(self, finer: bool, quick: bool = True) -> partial[WriteCandidate]:
        """The request for a candidate, given a strength."""
        return partial(WriteCandidate, self.photo, self.image, self.change, self.format, finer, quick=quick)

    def _locate(self, *images: Tensor) -> LocateInIndex:
        return LocateInIndex(self.evaluator, self.index, [self.evaluator.extractor.resize(image) for image in images])

    @property
    def _target_psnr(self) -> float | None:
        """The PSNR of the budget, if it states one."""
        return self.recipe.budget.psnr

    def _before_writing(self, psnr: float) -> Tensor:
        """The changed image at this PSNR, without the rounding of a file."""
        strength = 10 ** (-psnr / 20) / self.change_rms if self.change_rms else 0.0
        return (self.image + strength * self.change).clamp(0, 1)

    def _gain(self, position: IndexPosition) -> float:
        return self.original.loss - position.loss

    def _rejection_reason(self, candidate: Candidate, position: IndexPosition) -> str:
        """Why this candidate cannot be released as activated; empty if it can."""
        if self._target_psnr is not None and candidate.psnr < self._target_psnr:
            return (
                f"the written file has {candidate.psnr:.1f} dB, below the target of {self._target_psnr:g} dB; "
                "try a lossless format such as PNG, or a lower PSNR"
            )
        if position.cell != self.original.cell:
            return "the change moves it into another cell of the index"
        if position.loss > self.original.loss - MIN_LOSS_DECREASE * abs(self.original.loss):
            return "no change within the budget lowers its loss"
        return ""

    def _accept(self, candidate: Candidate, position: IndexPosition, note: str | None) -> Coroutine[Activation]:
        quality: Quality = yield MeasureQuality(self.image, candidate.decoded)
        data = candidate.data
        if format_name(self.format or self.photo.format) in QUICK_FORMATS:
            smaller: Candidate = yield self._write(candidate.finer, quick=False)(candidate.strength)
            data = smaller.data if torch.equal(smaller.decoded, candidate.decoded) else data
        return self._make_activation(data, "activated", note, quality, position)

    def _make_activation(
        self,
        data: bytes,
        state: Literal["activated", "unchanged"],
        reason: str | None,
        quality: Quality,
        now: IndexPosition,
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
            bytes_before=len(self.photo.data),
            notes=differences(self.photo.data, data, self.photo.name),
            loss_before=self.original.loss,
            loss_after=now.loss,
        )
