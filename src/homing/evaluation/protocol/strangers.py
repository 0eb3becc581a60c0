"""Strangers by the hundred thousand: descriptors of crops of other people's photos, kept between runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from homing.errors import HomingError, PhotoError
from homing.evaluation.protocol.kept import KeptRows, key_of, state_of
from homing.extractors import Extractor
from homing.extractors.crops import SEED, SMALLEST, describe_crops, square_side
from homing.photo import Found

_CHECKED_AT_ONCE = 65_536
_FOLDER = "a folder of photos serves every network"
_OFF_UNIT = 0.05  # bfloat16 and half precision are nearer to one than that


@dataclass(frozen=True)
class Strangers:
    """Descriptors (N, D), half precision, on disk; how many distinct photos they are of; which could not be read."""

    descriptors: np.ndarray
    photos: int
    failures: list[str]


def find_strangers(
    extractor: Extractor, photos: Sequence[Found], count: int, folder: Path, advance: Callable[[], None]
) -> Strangers:
    """Descriptors of these photos, `count` if all can be read; those an earlier run left in the folder are kept.

    `advance` is called for each photo, those that an earlier run saw first.
    """
    settings = [extractor.fingerprint, count, SEED, square_side(extractor), SMALLEST]
    file = folder / f"background-{key_of(settings, names_and_states(photos))}.npy"
    kept = KeptRows(file, (count, extractor.dim), np.float16)
    seen, failures = kept.said.get("seen", 0), kept.said.get("failures", [])
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
        kept.add(batch, seen=seen, failures=failures, extractor=extractor.fingerprint)
    if not kept.count:
        raise HomingError(f"none of the {len(failures)} background photos can be read; the first says: {failures[0]}")
    return Strangers(kept.rows, seen - len(failures), failures)


def read_strangers(file: Path, extractor: Extractor, count: int | None) -> Strangers:
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
    filled, photos, failures, fingerprint = _told(file, len(rows))
    if fingerprint not in (None, extractor.fingerprint):
        raise HomingError(f"{file} holds descriptors of another network than '{extractor.name}'; {_FOLDER}")
    rows = rows[: filled if count is None else min(count, filled)]
    if not len(rows):
        raise HomingError(f"{file} holds no descriptors")
    _expect_descriptors(rows, file)
    return Strangers(rows, min(photos, len(rows)), failures)


def names_and_states(photos: Sequence[Found]) -> list[list[object]]:
    """What tells one set of photos from another at a glance."""
    return [[str(photo.name), *state_of(photo.path)] for photo in photos]


def _told(file: Path, rows: int) -> tuple[int, int, list[str], str | None]:
    """What a bench noted beside its file: rows filled, photos they are of, failures, the network's fingerprint."""
    about = file.with_suffix(".json")
    if not about.is_file():
        return rows, rows, [], None  # nobody knows whose numbers made elsewhere are: they are taken for one photo each
    try:
        said = json.loads(about.read_text())
        filled, failures = min(int(said["rows"]), rows), list(said["failures"])
        return filled, int(said["seen"]) - len(failures), failures, str(said["extractor"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HomingError(f"{about} is damaged; the bench that wrote it mends it") from error


def _expect_descriptors(rows: np.ndarray, file: Path) -> None:
    """Refuse numbers that no network gives, which an index would take or break over."""
    for start in range(0, len(rows), _CHECKED_AT_ONCE):
        lengths = np.linalg.norm(rows[start : start + _CHECKED_AT_ONCE].astype(np.float32), axis=1)
        if not (np.abs(lengths - 1) < _OFF_UNIT).all():  # NaN is not below anything
            raise HomingError(f"{file} must hold descriptors of unit norm; some of its rows are not")
