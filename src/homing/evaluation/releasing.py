"""Photos released with one recipe, as files: what a bench lets others edit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from homing._files import write_atomically
from homing._parallel import map_ahead
from homing.activation import Activation, Recipe, activate
from homing.codebooks import Codebook
from homing.errors import PhotoError
from homing.evaluation.retrieval import Released
from homing.extractors import Extractor
from homing.perception import Quality
from homing.photo import Photo

PHOTOS_AT_ONCE = 16


@dataclass(frozen=True)
class Release:
    """The files of one recipe, the quality of those that were activated, and why others could not be written.

    A photo that activation left unchanged is released as it was, and has no part in the quality.
    """

    files: list[Released]
    qualities: list[Quality]
    failures: list[str]


def release(
    originals: Sequence[Released],
    folder: Path,
    *,
    extractor: Extractor,
    codebook: Codebook,
    recipe: Recipe,
    advance: Callable[[], None],
) -> Release:
    """Activate photos and write them into the folder under the names of their sources; `advance` is called for each."""

    def activated(batch: Sequence[Released]) -> list[Quality | PhotoError | None]:
        photos = [Photo.load(original.file) for original in batch]
        results = activate(photos, extractor=extractor, codebook=codebook, recipe=recipe)
        return [_write(result, folder / original.source) for original, result in zip(batch, results, strict=True)]

    made = Release([], [], [])
    batches = [originals[start : start + PHOTOS_AT_ONCE] for start in range(0, len(originals), PHOTOS_AT_ONCE)]
    for batch, results in zip(batches, map_ahead(activated, batches), strict=True):
        for original, result in zip(batch, results, strict=True):
            advance()
            if isinstance(result, PhotoError):
                made.failures.append(str(result))
                continue
            made.files.append(replace(original, file=folder / original.source))
            if result is not None:
                made.qualities.append(result)
    return made


def _write(result: Activation | PhotoError, target: Path) -> Quality | PhotoError | None:
    """Write what may be released; gives its quality if it was activated. The pixels are not kept."""
    if isinstance(result, PhotoError):
        return result
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, result.data)
    return result.quality if result.state == "activated" else None
