"""From photos to a codebook of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from homing.codebooks import Codebook
from homing.codebooks.codebook import untrained
from homing.errors import CodebookError, PhotoError
from homing.extractors import Extractor
from homing.extractors.crops import describe_crops


def train_codebook(
    paths: Sequence[Path],
    *,
    spec: str,
    extractor: Extractor,
    name: str,
    crops: int | None = None,
    report: Callable[[], None],
) -> tuple[Codebook, list[PhotoError]]:
    """A codebook learnt from photos, and the errors of those that could not be read; `report` is called per photo.

    It learns from every photo whole and from random crops, `crops` descriptors in all; by default as many as photos.
    """
    count = len(paths) if crops is None else crops
    untrained(spec, dim=extractor.dim, photos=count)  # says at once what training would say in an hour
    failures: list[PhotoError] = []

    def note(error: PhotoError | None) -> None:
        report()
        if error is not None:
            failures.append(error)

    rows = list(describe_crops(extractor, paths, count, note))
    if not rows:
        raise CodebookError(f"none of the {len(paths)} photos can be read; the first says: {failures[0]}")
    return Codebook.train(np.concatenate(rows), spec=spec, extractor=extractor, name=name), failures
