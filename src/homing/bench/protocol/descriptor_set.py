"""Descriptors of distractors: bundled with a codebook, in a file, or of photos and crops of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from homing import codebooks
from homing.bench.protocol.cache import CachedArray, cache_key, file_state
from homing.codebooks import Codebook
from homing.errors import HomingError, PhotoError
from homing.extractors import Extractor
from homing.extractors.crops import MIN_CROP_SIDE, SEED, describe_crops, square_side
from homing.photo import LocalPhoto

_CHECKED_AT_ONCE = 65_536
_FOLDER = "a folder of photos works with every network"
_NORM_TOLERANCE = 0.05  # rounding to bfloat16 or half precision stays below it


@dataclass(frozen=True)
class DescriptorSet:
    """Descriptors (N, D) in half precision, the number of distinct photos they are of, and errors of unreadable photos.

    `codes` (N, bytes) are set where only the codes of the photos are known; `descriptors` are then decoded from them.
    """

    descriptors: np.ndarray
    photos: int
    failures: list[str]
    codes: np.ndarray | None = None


def check_bundled_distractors(codebook: Codebook) -> None:
    """Refuse a codebook that has no bundled distractors."""
    if not codebooks.has_distractors(codebook):
        raise HomingError(
            f"codebook '{codebook.name}' has no bundled distractors; give photos to search among with "
            f"--distractor-photos, or one of these codebooks: {', '.join(codebooks.available())}"
        )


def bundled_descriptor_set(codebook: Codebook, count: int) -> DescriptorSet:
    """The first `count` distractors that are bundled with a codebook."""
    check_bundled_distractors(codebook)
    codes = codebooks.bundled_distractors(codebook).codes[:count]
    return DescriptorSet(codebook.decode(codes).numpy().astype(np.float16), len(codes), [], codes)


def compute_descriptor_set(
    extractor: Extractor, photos: Sequence[LocalPhoto], count: int, folder: Path, advance: Callable[[], None]
) -> DescriptorSet:
    """Descriptors of these photos: `count` in all if every photo can be read; cached in the folder.

    `advance` is called for each photo, first for those of an earlier run.
    """
    settings = [extractor.fingerprint, count, SEED, square_side(extractor), MIN_CROP_SIDE]
    file = folder / f"descriptors-{cache_key(settings, photo_states(photos))}.npy"
    cache = CachedArray(file, (count, extractor.dim), np.float16)
    seen, failures = cache.metadata.get("seen", 0), cache.metadata.get("failures", [])
    for _ in range(seen):
        advance()

    def report(error: PhotoError | None) -> None:
        nonlocal seen
        advance()
        seen += 1
        if error is not None:
            failures.append(str(error))

    paths = [photo.path for photo in photos]
    for batch in describe_crops(extractor, paths, count, report, start=seen):
        cache.append(batch, seen=seen, failures=failures, extractor=extractor.fingerprint)
    if not cache.count:
        raise HomingError(f"none of the {len(failures)} distractor photos can be read; the first error: {failures[0]}")
    return DescriptorSet(cache.rows, seen - len(failures), failures)


def read_descriptor_set(file: Path, extractor: Extractor, count: int | None) -> DescriptorSet:
    """The first `count` descriptors of a .npy file: a bench's cache, or (N, D) numbers from elsewhere."""
    try:
        rows: np.ndarray = np.lib.format.open_memmap(file, mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise HomingError(f"cannot read descriptors from {file}; give a .npy file or a folder of photos") from error
    if rows.ndim != 2 or rows.shape[1] != extractor.dim or rows.dtype.kind != "f":
        got = f"{rows.shape} of {rows.dtype}"
        raise HomingError(
            f"{file} must hold (N, {extractor.dim}) descriptors of '{extractor.name}', got {got}; {_FOLDER}"
        )
    filled, photos, failures, fingerprint = _read_metadata(file, len(rows))
    if fingerprint not in (None, extractor.fingerprint):
        raise HomingError(f"{file} holds descriptors of another network than '{extractor.name}'; {_FOLDER}")
    rows = rows[: filled if count is None else min(count, filled)]
    if not len(rows):
        raise HomingError(f"{file} holds no descriptors")
    _expect_descriptors(rows, file)
    return DescriptorSet(rows, min(photos, len(rows)), failures)


def photo_states(photos: Sequence[LocalPhoto]) -> list[list[object]]:
    """Name, size and modification time of each photo, to tell sets of photos apart."""
    return [[str(photo.name), *file_state(photo.path)] for photo in photos]


def _read_metadata(file: Path, rows: int) -> tuple[int, int, list[str], str | None]:
    """The metadata of a bench's cache: filled rows, number of photos, failures, the network's fingerprint."""
    metadata_file = file.with_suffix(".json")
    if not metadata_file.is_file():
        return rows, rows, [], None  # numbers from elsewhere: one photo each is assumed
    try:
        metadata = json.loads(metadata_file.read_text())
        filled, failures = min(int(metadata["rows"]), rows), list(metadata["failures"])
        return filled, int(metadata["seen"]) - len(failures), failures, str(metadata["extractor"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HomingError(f"{metadata_file} is damaged; run the bench that wrote it again") from error


def _expect_descriptors(rows: np.ndarray, file: Path) -> None:
    """Refuse rows that are not of unit norm: no extractor returns them, and an index would be wrong or fail."""
    for start in range(0, len(rows), _CHECKED_AT_ONCE):
        lengths = np.linalg.norm(rows[start : start + _CHECKED_AT_ONCE].astype(np.float32), axis=1)
        if not (np.abs(lengths - 1) < _NORM_TOLERANCE).all():  # false for NaN
            raise HomingError(f"{file} must hold descriptors of unit norm; some of its rows are not")
