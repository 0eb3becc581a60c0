"""From photos to a codebook of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from torch import Tensor

from homing._parallel import map_ahead
from homing.codebooks import Codebook
from homing.codebooks.codebook import untrained
from homing.errors import CodebookError, PhotoError
from homing.extractors import Extractor, describe
from homing.photo import Photo

BATCH = 16


def train_codebook(
    paths: Sequence[Path], *, spec: str, extractor: Extractor, name: str, report: Callable[[], None]
) -> tuple[Codebook, list[PhotoError]]:
    """A codebook learnt from photos, and the errors of those that could not be read; `report` is called per photo."""
    untrained(spec, dim=extractor.dim, photos=len(paths))  # says at once what training would say in an hour

    def square(path: Path) -> Tensor | PhotoError:
        try:
            return extractor.resize(Photo.load(path).view())
        except PhotoError as error:
            return error

    failures: list[PhotoError] = []
    rows: list[np.ndarray] = []
    batch: list[Tensor] = []
    for result in map_ahead(square, paths):
        report()
        if isinstance(result, PhotoError):
            failures.append(result)
            continue
        batch.append(result)
        if len(batch) == BATCH:
            rows.append(describe(extractor, batch).numpy())
            batch.clear()
    if batch:
        rows.append(describe(extractor, batch).numpy())
    if not rows:
        raise CodebookError(f"none of the {len(paths)} photos can be read; the first says: {failures[0]}")
    return Codebook.train(np.concatenate(rows), spec=spec, extractor=extractor, name=name), failures
