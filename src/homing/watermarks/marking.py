"""Photos in, photos with a watermark out: written, decoded again, measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from homing.activation.courses import Course, answer_together
from homing.activation.forecast import Forecast
from homing.activation.requests import Foretell, Measure, Trial, Write
from homing.activation.strength import at_psnr
from homing.errors import PhotoError
from homing.extractors import Extractor, describe
from homing.perception import Budget, Quality
from homing.perception.quality import UNCHANGED, loudness
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
    loud = torch.stack([loudness(change) for change in changes]).tolist()
    of_each = zip(photos, views, changes, loud, messages, strict=True)
    return answer_together([_mark(*each, decoder=watermark.decoder, wanted=budget.psnr) for each in of_each])


def _mark(
    photo: Photo,
    view: Tensor,
    change: Tensor,
    loud: float,
    message: Tensor,
    *,
    decoder: Extractor,
    wanted: float | None,
) -> Course[Marked]:
    """Its own tables or finer ones: those whose file says its weakest bit most clearly, as edits take some of it."""
    trials: list[Trial] = []
    for finer in (False, True):
        forecast = Forecast.of(photo, view, change, finer=finer)
        foretell = None if forecast is None else partial(Foretell, forecast)
        trials.append((yield from at_psnr(partial(Write, photo, view, change, None, finer), wanted, loud, foretell)))
    kept = [trial for trial in trials if wanted is None or trial.psnr >= wanted]
    if not kept:
        return Marked(photo, photo.data, "unchanged", f"no file of it has the {wanted:g} dB asked for", UNCHANGED)
    # How far each bit that a file says lies on its right side.
    clear = [torch.where(message, said, -said) for said in describe(decoder, [trial.seen for trial in kept])]
    best, bits = max(zip(kept, clear, strict=True), key=lambda pair: float(pair[1].min()))
    right = int((bits > 0).sum())
    reason = None if right == len(message) else f"its file says {right} of {len(message)} bits right"
    quality: Quality = yield Measure(view, best.seen)
    if photo.format in QUICKER:
        best = yield Write(photo, view, change, None, best.finer, best.strength, quick=False)
    return Marked(photo, best.data, "marked", reason, quality)
