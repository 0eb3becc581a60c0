"""Distractors by the hundred thousand: descriptors of crops of other people's photos, kept between runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from homing.errors import HomingError, PhotoError
from homing.evaluation.protocol.cache import CachedArray, cache_key, file_state
from homing.extractors import Extractor
from homing.extractors.crops import MIN_CROP_SIDE, SEED, describe_crops, square_side
from homing.photo import LocalPhoto

_CHECKED_AT_ONCE = 65_536
_FOLDER = "a folder of photos serves every network"
_OFF_UNIT = 0.05  # bfloat16 and half precision are nearer to one than that


@dataclass(frozen=True)
class DescriptorSet:
    """Descriptors (N, D), half precision, on disk; how many distinct photos they are of; which could not be read."""

    descriptors: np.ndarray
    photos: int
    failures: list[str]


def compute_descriptor_set(
    extractor: Extractor, photos: Sequence[LocalPhoto], count: int, folder: Path, advance: Callable[[], None]
) -> DescriptorSet:
    """Descriptors of these photos, `count` if all can be read; those an earlier run left in the folder are kept.

    `advance` is called for each photo, those that an earlier run saw first.
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
        raise HomingError(f"none of the {len(failures)} distractor photos can be read; the first says: {failures[0]}")
    return DescriptorSet(cache.rows, seen - len(failures), failures)


def read_descriptor_set(file: Path, extractor: Extractor, count: int | None) -> DescriptorSet:
    """The first descriptors of a .npy file: one that a bench left in its folder, or (N, D) numbers made elsewhere."""
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
    """What tells one set of photos from another at a glance."""
    return [[str(photo.name), *file_state(photo.path)] for photo in photos]


def _read_metadata(file: Path, rows: int) -> tuple[int, int, list[str], str | None]:
    """What a bench noted beside its file: rows filled, photos they are of, failures, the network's fingerprint."""
    metadata_file = file.with_suffix(".json")
    if not metadata_file.is_file():
        return rows, rows, [], None  # nobody knows whose numbers made elsewhere are: they are taken for one photo each
    try:
        metadata = json.loads(metadata_file.read_text())
        filled, failures = min(int(metadata["rows"]), rows), list(metadata["failures"])
        return filled, int(metadata["seen"]) - len(failures), failures, str(metadata["extractor"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HomingError(f"{metadata_file} is damaged; the bench that wrote it mends it") from error


def _expect_descriptors(rows: np.ndarray, file: Path) -> None:
    """Refuse numbers that no network gives, which an index would take or break over."""
    for start in range(0, len(rows), _CHECKED_AT_ONCE):
        lengths = np.linalg.norm(rows[start : start + _CHECKED_AT_ONCE].astype(np.float32), axis=1)
        if not (np.abs(lengths - 1) < _OFF_UNIT).all():  # NaN is not below anything
            raise HomingError(f"{file} must hold descriptors of unit norm; some of its rows are not")
