"""Train a codebook on photos."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from homing.codebooks import Codebook
from homing.codebooks.faiss_training import build_quantizer
from homing.errors import CodebookError, PhotoError
from homing.extractors import Extractor
from homing.extractors.crops import describe_crops

SEED = 0


@dataclass(frozen=True)
class TrainedCodebook:
    """A codebook, the numbers of descriptors and photos it was trained on, and the errors of the other photos."""

    codebook: Codebook
    descriptors: int
    photos: int
    failures: list[PhotoError]


def train_codebook(
    paths: Sequence[Path],
    *,
    spec: str,
    extractor: Extractor,
    name: str,
    descriptors: int | None = None,
    report: Callable[[], None],
) -> TrainedCodebook:
    """Train a codebook on whole photos and random crops of them; `report` is called per photo.

    `descriptors` are spread evenly over the photos; by default each gives one. Photos that cannot be read give none.
    """
    count = len(paths) if descriptors is None else descriptors
    build_quantizer(spec, dim=extractor.dim, descriptors=count)  # refuses bad specs before an hour of describing
    rows, failures = describe_photos(extractor, paths, count, report)
    book = codebook_from_descriptors(rows, spec=spec, extractor=extractor, name=name, per_photo=-(-count // len(paths)))
    return TrainedCodebook(book, len(rows), len(paths) - len(failures), failures)


def describe_photos(
    extractor: Extractor, paths: Sequence[Path], count: int, report: Callable[[], None]
) -> tuple[np.ndarray, list[PhotoError]]:
    """`count` descriptors of whole photos and random crops of them, and the errors of photos that cannot be read."""
    failures: list[PhotoError] = []

    def on_photo(error: PhotoError | None) -> None:
        report()
        if error is not None:
            failures.append(error)

    batches = list(describe_crops(extractor, paths, count, on_photo))
    if not batches:
        raise CodebookError(f"none of the {len(failures)} photos can be read; the first error: {failures[0]}")
    return np.concatenate(batches), failures


def codebook_from_descriptors(
    rows: np.ndarray, *, spec: str, extractor: Extractor, name: str, per_photo: int = 1
) -> Codebook:
    """Train a codebook on (N, D) descriptors; those of one photo, at most `per_photo`, are consecutive."""
    mixed = rows[np.random.default_rng(SEED).permutation(len(rows))].astype(np.float32, copy=False)
    photos = rows[::per_photo].astype(np.float32, copy=False)  # at most one row per photo
    return Codebook.train(mixed, spec=spec, extractor=extractor, name=name, photos=photos)
