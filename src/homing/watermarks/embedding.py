"""Embed watermarks: photos in, files out, measured on their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from homing.activation.strength import Candidate, ChangedPhoto, write_at_psnr, write_candidates
from homing.errors import PhotoError
from homing.extractors import Extractor, describe_images
from homing.perception import Budget, Quality
from homing.perception.quality import UNCHANGED, measure_batch
from homing.photo import QUICK_FORMATS, Photo
from homing.watermarks.base import Watermark, identifier


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
        (smaller,) = write_candidates([changed], [best.strength], [best.finer], quick=False)
        if isinstance(smaller, PhotoError):
            return smaller
        best = smaller
    return MarkedPhoto(photo, best.data, "marked", reason, quality)
