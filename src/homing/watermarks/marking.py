"""Photos in, photos with a watermark out: written, decoded again, measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from homing.activation.forecast import Forecast
from homing.activation.strength import at_psnr
from homing.errors import PhotoError
from homing.extractors import describe
from homing.perception import Budget, Quality, measure
from homing.perception.quality import psnr
from homing.photo import QUICKER, Photo
from homing.watermarks.base import Watermark, identifier


@dataclass(frozen=True)
class Marked:
    """What came of one photo: the bytes to release, and how they were found to be."""

    photo: Photo
    data: bytes
    state: Literal["marked", "unchanged"]
    reason: str | None
    quality: Quality


@dataclass(frozen=True, eq=False)
class _File:
    """The photo as written at one strength."""

    finer: bool
    moved: Photo
    written: Photo
    strength: float
    psnr: float


def mark(photos: Sequence[Photo], *, watermark: Watermark, budget: Budget) -> list[Marked | PhotoError]:
    """Hide its identifier in each photo; what comes back was measured on the bytes it holds.

    A photo whose file does not say all bits is released all the same, with the reason; one whose file would be worse
    than the budget is left as it was. A photo that cannot be written gives its error in its place.
    """
    if not photos:
        return []
    views = [photo.view() for photo in photos]
    messages = torch.stack([identifier(photo.sha256, watermark.decoder.dim) for photo in photos])
    changes = watermark.changes(views, messages, budget)
    made: list[Marked | PhotoError] = []
    for photo, view, change, message in zip(photos, views, changes, messages, strict=True):
        try:
            made.append(_mark(photo, view, change, message, watermark, budget))
        except PhotoError as error:
            made.append(error)
    return made


def _mark(photo: Photo, view: Tensor, change: Tensor, message: Tensor, watermark: Watermark, budget: Budget) -> Marked:
    """Its own tables or finer ones: those whose file says its weakest bit most clearly, as edits take some of it."""

    def write(strength: float, finer: bool) -> _File:
        moved = photo.moved(strength * change)
        written = Photo.decode(moved.encode(finer=finer, quick=True), photo.name)
        return _File(finer, moved, written, strength, psnr(view, written.view()))

    size = float(change.square().mean().sqrt())
    files = [
        at_psnr(partial(write, finer=finer), budget.psnr, size, Forecast.of(photo, view, change, finer=finer))
        for finer in (False, True)
    ]
    kept = [file for file in files if budget.psnr is None or file.psnr >= budget.psnr]
    if not kept:
        under = f"no file of it has the {budget.psnr:g} dB asked for"
        return Marked(photo, photo.data, "unchanged", under, measure(view, view))
    # How far each bit that a file says lies on its right side.
    clear = [
        torch.where(message, said, -said) for said in describe(watermark.decoder, [f.written.view() for f in kept])
    ]
    best, bits = max(zip(kept, clear, strict=True), key=lambda pair: float(pair[1].min()))
    right = int((bits > 0).sum())
    reason = None if right == len(message) else f"its file says {right} of {len(message)} bits right"
    data = best.moved.encode(finer=best.finer) if photo.format in QUICKER else best.written.data
    return Marked(photo, data, "marked", reason, measure(view, best.written.view()))
