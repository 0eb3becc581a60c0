"""Photos released with one recipe, as files: what a bench lets others edit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from homing._files import write_atomically, writing
from homing._parallel import map_ahead
from homing.activation import Recipe, activate
from homing.activation.batch import in_batches
from homing.codebooks import Codebook
from homing.errors import PhotoError
from homing.evaluation.retrieval import Released
from homing.extractors import Extractor
from homing.perception import Quality
from homing.photo import Photo


@dataclass(frozen=True)
class ReleasedFiles:
    """The files of one recipe, the quality of those that were activated, and why others could not be released.

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
) -> ReleasedFiles:
    """Activate photos and write them into the folder under the names of their sources; `advance` is called for each."""
    move = partial(activate, extractor=extractor, codebook=codebook, recipe=recipe)
    made = ReleasedFiles([], [], [])
    for original, result in in_batches(map_ahead(_load, originals), move):
        advance()
        if isinstance(result, PhotoError):
            made.failures.append(str(result))
            continue
        target = folder / original.source
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, result.data)
        made.files.append(replace(original, file=target))
        if result.state == "activated":
            made.qualities.append(result.quality)
    return made


def _load(original: Released) -> tuple[Released, Photo | PhotoError]:
    try:
        return original, Photo.load(original.file)
    except PhotoError as error:
        return original, error
