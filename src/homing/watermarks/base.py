"""Watermarks: their interface, the identifier they hide, the edits they survive, and the files of marked photos."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from homing.activation.strength import Candidate, ChangedPhoto, write_at_psnr, write_candidates
from homing.edits import Ranges, Views, random_edits
from homing.errors import PhotoError
from homing.extractors import Extractor, describe_images
from homing.perception import Budget, Quality
from homing.perception.quality import UNCHANGED, measure_batch
from homing.photo import QUICK_FORMATS, Photo

EDITS: Ranges = {
    "identity": None,
    "contrast": (0.5, 2.0),
    "brightness": (0.5, 2.0),
    "hue": (-0.25, 0.25),
    "blur": (0.2, 2.0),  # in pixels at the decoder's input size
    "jpeg": (30, 95),
    "rotation": (-90, 90),
    "crop": (0.3, 1.0),
    "resize": (0.2, 1.0),
    "meme": None,
}


class Watermark(Protocol):
    """A way to hide messages in photos, and to read them from copies.

    The decoder is an extractor whose descriptor is the message: one number for each bit, above zero where it is set.
    """

    name: str
    fingerprint: str
    """Hash of everything that determines the change of a photo."""

    @property
    def decoder(self) -> Extractor:
        """The decoder, which reads messages from copies."""

    def changes(self, images: Sequence[Tensor], messages: Tensor, budget: Budget) -> list[Tensor]:
        """The change of each (3, H, W) image that hides its message, a row of (B, bits) bool, within the budget."""


def identifier(sha256: str, bits: int) -> Tensor:
    """The message (bits,) of a photo: the last bits of the hash of its file, so no list is needed."""
    number = int(sha256, 16)
    return torch.tensor([bool(number >> i & 1) for i in range(bits)])


def random_edit(views: Views, rng: np.random.Generator) -> Views:
    """Apply one random edit to each view, all kinds equally often. Differentiable."""
    names = rng.permutation(list(EDITS)).tolist()
    parts = zip(names, np.array_split(np.arange(len(views)), len(names)), strict=True)
    edited = [
        random_edits(views[part[0] : part[-1] + 1], {name: EDITS[name]}, rng) for name, part in parts if len(part)
    ]
    return Views(torch.cat([each.pixels for each in edited]), torch.cat([each.ratio for each in edited]))


@dataclass(frozen=True)
class MarkedPhoto:
    """The result for one photo: the bytes to release and what was measured on them."""

    photo: Photo
    data: bytes
    state: Literal["marked", "unchanged"]
    reason: str | None
    quality: Quality


def mark(photos: Sequence[Photo], *, watermark: Watermark, budget: Budget) -> list[MarkedPhoto | PhotoError]:
    """Hide the identifier of each photo in it. Qualities are measured on the bytes of the result.

    A photo whose file does not have all bits right is released with a reason; one whose file would be worse than the
    budget stays unchanged. A photo that cannot be written gives its error in its place.
    """
    if not photos:
        return []
    images = [photo.pixels() for photo in photos]
    messages = torch.stack([identifier(photo.sha256, watermark.decoder.dim) for photo in photos])
    changed = ChangedPhoto.batch(photos, images, watermark.changes(images, messages, budget))
    # With the photo's own tables and finer ones; the file whose weakest bit has the largest margin is kept.
    usual, finer = (write_at_psnr(changed, budget.psnr, finer=finer) for finer in (False, True))
    return [
        _choose(*each, decoder=watermark.decoder, target_psnr=budget.psnr)
        for each in zip(changed, messages, zip(usual, finer, strict=True), strict=True)
    ]


def _choose(
    changed: ChangedPhoto,
    message: Tensor,
    candidates: Sequence[Candidate | PhotoError],
    *,
    decoder: Extractor,
    target_psnr: float | None,
) -> MarkedPhoto | PhotoError:
    """The file to release: the one whose weakest bit has the largest margin, of those that meet the target."""
    photo, written = changed.photo, []
    for candidate in candidates:
        if isinstance(candidate, PhotoError):
            return candidate
        if target_psnr is None or candidate.psnr >= target_psnr:
            written.append(candidate)
    if not written:
        missed = f"no file reaches the target of {target_psnr:g} dB"
        return MarkedPhoto(photo, photo.data, "unchanged", missed, UNCHANGED)
    # The margin of each bit decoded from a file; positive if the bit is right.
    margins = [
        torch.where(message, scores, -scores)
        for scores in describe_images(decoder, [candidate.decoded for candidate in written])
    ]
    best, bits = max(zip(written, margins, strict=True), key=lambda pair: float(pair[1].min()))
    right = int((bits > 0).sum())
    reason = None if right == len(message) else f"its file has {right} of {len(message)} bits right"
    (quality,) = measure_batch([changed.image], [best.decoded])
    if photo.format in QUICK_FORMATS:
        (smaller,) = write_candidates([(changed, best.strength, best.finer)], quick=False)
        if isinstance(smaller, PhotoError):
            return smaller
        best = smaller
    return MarkedPhoto(photo, best.data, "marked", reason, quality)
