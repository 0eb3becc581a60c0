"""Embed watermarks: photos in, files out, measured on their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from homing.activation.coroutines import Coroutine, run_coroutines
from homing.activation.jpeg_psnr import JpegPsnr
from homing.activation.requests import Candidate, MeasureQuality, PredictPsnr, WriteCandidate
from homing.activation.strength import write_at_psnr
from homing.errors import PhotoError
from homing.extractors import Extractor, describe_images
from homing.perception import Budget, Quality
from homing.perception.quality import UNCHANGED, rms
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
    changes = watermark.changes(images, messages, budget)
    change_rms = torch.stack([rms(change) for change in changes]).tolist()
    per_photo = zip(photos, images, changes, change_rms, messages, strict=True)
    return run_coroutines([_mark(*each, decoder=watermark.decoder, wanted=budget.psnr) for each in per_photo])


def _mark(
    photo: Photo,
    image: Tensor,
    change: Tensor,
    change_rms: float,
    message: Tensor,
    *,
    decoder: Extractor,
    wanted: float | None,
) -> Coroutine[MarkedPhoto]:
    """Write with the photo's own tables and finer ones; keep the file whose weakest bit has the largest margin."""
    candidates: list[Candidate] = []
    for finer in (False, True):
        predictor = JpegPsnr.of(photo, image, change, finer=finer)
        predict = None if predictor is None else partial(PredictPsnr, predictor)
        candidates.append(
            (
                yield from write_at_psnr(
                    partial(WriteCandidate, photo, image, change, None, finer), wanted, change_rms, predict
                )
            )
        )
    written = [candidate for candidate in candidates if wanted is None or candidate.psnr >= wanted]
    if not written:
        return MarkedPhoto(photo, photo.data, "unchanged", f"no file reaches the target of {wanted:g} dB", UNCHANGED)
    # The margin of each bit decoded from a file; positive if the bit is right.
    margins = [
        torch.where(message, scores, -scores)
        for scores in describe_images(decoder, [candidate.decoded for candidate in written])
    ]
    best, bits = max(zip(written, margins, strict=True), key=lambda pair: float(pair[1].min()))
    right = int((bits > 0).sum())
    reason = None if right == len(message) else f"its file has {right} of {len(message)} bits right"
    quality: Quality = yield MeasureQuality(image, best.decoded)
    if photo.format in QUICK_FORMATS:
        best = yield WriteCandidate(photo, image, change, None, best.finer, best.strength, quick=False)
    return MarkedPhoto(photo, best.data, "marked", reason, quality)
