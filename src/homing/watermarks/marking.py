"""Photos in, photos with a watermark out: written, decoded again, measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from homing.activation.strength import at_psnr
from homing.errors import PhotoError
from homing.extractors import describe
from homing.perception import Budget, Quality, measure
from homing.perception.quality import psnr
from homing.photo import Photo
from homing.watermarks.base import Watermark, identifier


@dataclass(frozen=True)
class Marked:
    """What came of one photo: the bytes to release, and how they were found to be."""

    photo: Photo
    data: bytes
    state: Literal["marked", "unchanged"]
    reason: str | None
    quality: Quality


@dataclass(frozen=True)
class _File:
    """The photo as written at one strength, how many bits its file says right, and how clearly the weakest of them."""

    data: bytes
    strength: float
    psnr: float
    right: int
    weakest: float


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
        data = photo.moved(strength * change).encode(finer=finer)
        written = Photo.decode(data, photo.name).view()
        said = describe(watermark.decoder, [written])[0]
        right = int(((said > 0) == message).sum())
        weakest = float(torch.where(message, said, -said).min())
        return _File(data, strength, psnr(view, written), right, weakest)

    files = [at_psnr(partial(write, finer=finer), budget.psnr) for finer in (False, True)]
    kept = [file for file in files if budget.psnr is None or file.psnr >= budget.psnr]
    best = max(kept, key=lambda file: file.weakest, default=None)
    if best is None:
        under = f"no file of it has the {budget.psnr:g} dB asked for"
        return Marked(photo, photo.data, "unchanged", under, measure(view, view))
    reason = None if best.right == len(message) else f"its file says {best.right} of {len(message)} bits right"
    return Marked(photo, best.data, "marked", reason, measure(view, Photo.decode(best.data, photo.name).view()))
