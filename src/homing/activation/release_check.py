"""The release check: write the changed photos, decode the files again, measure them, and accept or reject them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from homing._io.files import report_write_errors, write_atomically
from homing._tensors import to_device
from homing.activation.strength import Attempt, Candidate, ChangedPhoto, write_at_psnr, write_candidates
from homing.codebooks import Codebook
from homing.errors import PhotoError
from homing.extractors import Extractor, describe_images
from homing.objectives import Objective
from homing.perception import Quality
from homing.perception.quality import UNCHANGED, measure_batch
from homing.photo import QUICK_FORMATS, Photo, differences, format_name
from homing.photo.files import SUFFIXES, display_format, has_suffix_of

MIN_LOSS_DECREASE = 1e-3  # relative decrease required of the loss: more than rounding errors of the network
_HALVINGS = 2  # of the strength of a rejected candidate
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
                f"{os.fspath(path)}: the file is {display_format(format)}, so its name must end in "
                f"{SUFFIXES[format]}; for another format, activate the photo with `format`"
            )
        with report_write_errors(Path(path)):
            write_atomically(Path(path), self.data)


class IndexPosition(NamedTuple):
    """Descriptor (D,), cell and loss of an image."""

    descriptor: Tensor
    cell: int
    loss: float


@dataclass(eq=False)
class _PhotoCheck:
    """What the check knows of one photo: its last candidate, and why that is rejected."""

    index: int
    """Index of the photo in its batch."""
    changed: ChangedPhoto
    original: IndexPosition
    code: np.ndarray
    rejection: str | None
    """Why the photo cannot be released as activated; None if it can."""
    candidate: Candidate = field(init=False)
    position: IndexPosition = field(init=False)
    """The position of the candidate, decoded again."""
    share: float = 1.0
    """The share of the strength that the budget allows."""
    error: PhotoError | None = None

    @property
    def keeps_file(self) -> bool:
        """Whether the photo's own file is released: it is rejected, and no other format is requested."""
        return self.rejection is not None and self.changed.format is None

    @property
    def needs_last_file(self) -> bool:
        """Whether another file is released than the candidate: a smaller one, or the original in another format."""
        format = format_name(self.changed.format or self.changed.photo.format)
        return not (self.error or self.keeps_file) and (self.rejection is not None or format in QUICK_FORMATS)

    def before_writing(self) -> Tensor:
        """The changed image at the PSNR of the candidate, without the rounding of a file."""
        rms = self.changed.change_rms
        strength = 10 ** (-self.candidate.psnr / 20) / rms if rms else 0.0
        return (self.changed.image + strength * self.changed.change).clamp(0, 1)

    def attempt(self, factor: float) -> Attempt:
        """The last attempt again, with its strength multiplied by a factor."""
        return self.changed, factor * self.candidate.strength, self.candidate.finer

    def gain(self, position: IndexPosition) -> float:
        """The decrease of the loss from the original to this position."""
        return self.original.loss - position.loss

    def activation(self, quality: Quality | None) -> Activation:
        """The result: the candidate with this quality, or the photo's own file."""
        photo, accepted = self.changed.photo, self.rejection is None
        data = photo.data if self.keeps_file else self.candidate.data
        now = self.position if accepted else self.original
        return Activation(
            sha256=photo.sha256,
            data=data,
            state="activated" if accepted else "unchanged",
            reason=self._remark() if accepted else self.rejection,
            quality=quality or UNCHANGED,
            descriptor=self.original.descriptor.numpy(),
            descriptor_after=now.descriptor.numpy() if accepted else None,
            code=self.code,
            bytes_before=len(photo.data),
            notes=differences(photo.data, data, photo.name),
            loss_before=self.original.loss,
            loss_after=now.loss,
        )

    def _remark(self) -> str | None:
        """How the candidate was written to be accepted."""
        finer = ["written with finer quantization, which keeps more of the change"] * self.candidate.finer
        weaker = [f"changed by {self.share:g} of what the budget allows"] * (self.share < 1)
        return "; ".join(finer + weaker) or None


@dataclass(frozen=True, eq=False)
class ReleaseCheck:
    """The release check of batches: in each round, all open photos are written, measured and located together."""

    extractor: Extractor
    codebook: Codebook
    objective: Objective
    target_psnr: float | None

    def run(
        self, changed: Sequence[ChangedPhoto], originals: Tensor, refusals: Sequence[str | None]
    ) -> list[Activation | PhotoError]:
        """The first candidate of each photo that lowers its loss within the budget, else the original photo.

        The rounds: as strong as the budget allows; with finer quantization; with half and with a quarter of the
        strength. `originals` are the descriptors (B, D). A photo with a refusal is released unchanged, for this reason.
        """
        positions, codes = self._locate(originals, range(len(changed))), self.codebook.encode(originals)
        per_photo = zip(changed, positions, codes, refusals, strict=True)
        checks = [_PhotoCheck(index, *each) for index, each in enumerate(per_photo)]
        photos = [photo for photo in checks if photo.rejection is None]
        strongest = write_at_psnr([each.changed for each in photos], self.target_psnr)
        lossy = _lossy(self._check(photos, strongest, before_writing=True))
        self._check(lossy, write_at_psnr([each.changed for each in lossy], self.target_psnr, finer=True))
        for _ in range(_HALVINGS):
            rejected = [photo for photo in photos if photo.rejection and not photo.error]
            for photo in rejected:
                photo.share /= 2
            self._check(rejected, write_candidates([each.attempt(0.5) for each in rejected]))
        return _released(checks)

    def _check(
        self,
        photos: Sequence[_PhotoCheck],
        candidates: Sequence[Candidate | PhotoError],
        *,
        before_writing: bool = False,
    ) -> list[_PhotoCheck]:
        """Accept or reject the next candidates of these photos.

        With `before_writing` they are compared with the images before they were written. Returns the photos that are
        rejected, or lost too much of their gain by being written.
        """
        for photo, candidate in zip(photos, candidates, strict=True):
            if isinstance(candidate, PhotoError):
                photo.error = candidate
            else:
                photo.candidate = candidate
        written = [photo for photo in photos if not photo.error]
        if not written:
            return []
        inputs = [self.extractor.resize(photo.candidate.decoded) for photo in written]
        if before_writing:
            inputs += [self.extractor.resize(photo.before_writing()) for photo in written]
        indices = [photo.index for photo in written] * (2 if before_writing else 1)
        positions = self._locate(describe_images(self.extractor, inputs), indices)
        for photo, position in zip(written, positions, strict=False):
            photo.position = position
            photo.rejection = self._rejection_reason(photo.candidate, position, photo.original)
        return [
            photo
            for photo, ideal in zip(written, positions[len(written) :], strict=False)
            if photo.rejection or photo.gain(photo.position) < _MIN_GAIN_KEPT * photo.gain(ideal)
        ]

    def _rejection_reason(self, candidate: Candidate, position: IndexPosition, original: IndexPosition) -> str | None:
        """Why this candidate cannot be released as activated; None if it can."""
        if self.target_psnr is not None and candidate.psnr < self.target_psnr:
            return (
                f"the written file has {candidate.psnr:.1f} dB, below the target of {self.target_psnr:g} dB; "
                "try a lossless format such as PNG, or a lower PSNR"
            )
        if position.cell != original.cell:
            return "the change moves it into another cell of the index"
        if position.loss > original.loss - MIN_LOSS_DECREASE * abs(original.loss):
            return "no change within the budget lowers its loss"
        return None

    def _locate(self, descriptors: Tensor, indices: Sequence[int]) -> list[IndexPosition]:
        """The position of each of (N, D) descriptors, which belong to the photos with these batch indices."""
        device = self.extractor.device
        losses = self.objective.select(to_device(np.array(indices), device))(descriptors.to(device)).tolist()
        per_photo = zip(descriptors, self.codebook.cells(descriptors).tolist(), losses, strict=True)
        return [IndexPosition(*each) for each in per_photo]


def _lossy(photos: Sequence[_PhotoCheck]) -> list[_PhotoCheck]:
    """The photos whose files would keep more of the change with finer quantization."""
    lossy, unknown = [], []
    for photo in photos:
        usual, finest = (photo.changed.photo.jpeg_tables(photo.changed.format, finer) for finer in (False, True))
        if usual is None:
            unknown.append(photo)
        elif usual != finest:
            lossy.append(photo)
    # In other formats than JPEG only writing again can tell.
    again = write_candidates([(photo.changed, photo.candidate.strength, True) for photo in unknown])
    for photo, file in zip(unknown, again, strict=True):
        if isinstance(file, PhotoError):
            photo.error = file
        elif file.data != photo.candidate.data:
            lossy.append(photo)
    return lossy


def _released(checks: Sequence[_PhotoCheck]) -> list[Activation | PhotoError]:
    """Write the last files, and measure what is released."""
    rewritten = [photo for photo in checks if photo.needs_last_file]
    last = [(each.changed, 0.0, True) if each.rejection else each.attempt(1.0) for each in rewritten]
    files = write_candidates(last, quick=False)
    for photo, file in zip(rewritten, files, strict=True):
        if isinstance(file, PhotoError):
            photo.error = file
        elif photo.rejection:
            photo.candidate = file  # the unchanged photo in the requested format
        elif torch.equal(file.decoded, photo.candidate.decoded):
            photo.candidate = photo.candidate._replace(data=file.data)  # a smaller file with the same pixels
    released = [photo for photo in checks if not (photo.error or photo.keeps_file)]
    qualities = measure_batch(
        [photo.changed.image for photo in released], [photo.candidate.decoded for photo in released]
    )
    measured = dict(zip((photo.index for photo in released), qualities, strict=True))
    return [photo.error or photo.activation(measured.get(photo.index)) for photo in checks]
