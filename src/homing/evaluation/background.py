"""Strangers by the hundred thousand: descriptors of crops of other people's photos, kept between runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from homing._files import write_atomically
from homing.errors import HomingError, PhotoError
from homing.extractors import Extractor
from homing.extractors.crops import SEED, SMALLEST, SQUARE, describe_crops
from homing.photo import Found


@dataclass(frozen=True)
class Strangers:
    """Descriptors (N, D), half precision, on disk; how many distinct photos they are of; which could not be read."""

    descriptors: np.ndarray
    photos: int
    failures: list[str]


def find_strangers(
    extractor: Extractor, photos: Sequence[Found], crops: int, folder: Path, advance: Callable[[], None]
) -> Strangers:
    """`crops` descriptors of these photos: those an earlier run left in the folder if it was of the same, or new ones.

    `advance` is called for each photo that is described.
    """
    key = _key(extractor, photos, crops)
    file = folder / f"background-{key[:16]}.npy"
    about = file.with_suffix(".json")
    if not file.exists() or not about.exists() or json.loads(about.read_text())["key"] != key:
        count, failures = _describe(file, extractor, photos, crops, advance)
        said = {"key": key, "photos": count, "failures": failures}
        write_atomically(about, json.dumps(said, indent=2).encode())
    said = json.loads(about.read_text())
    return Strangers(np.load(file, mmap_mode="r"), said["photos"], said["failures"])


def _describe(
    file: Path, extractor: Extractor, photos: Sequence[Found], crops: int, advance: Callable[[], None]
) -> tuple[int, list[str]]:
    """Write the descriptors as they come; gives how many photos they are of, and the errors of the others."""
    reported: list[PhotoError | None] = []

    def report(error: PhotoError | None) -> None:
        advance()
        reported.append(error)

    part = file.with_name(f".{file.name}.part")
    try:
        rows = np.lib.format.open_memmap(part, mode="w+", dtype=np.float16, shape=(crops, extractor.dim))
        filled = 0
        for batch in describe_crops(extractor, [photo.path for photo in photos], crops, report):
            rows[filled : filled + len(batch)] = batch
            filled += len(batch)
        failures = [str(error) for error in reported if error is not None]
        if len(failures) == len(reported):
            raise HomingError(f"none of the {len(photos)} background photos can be read; the first says: {failures[0]}")
        rows.flush()
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    return len(reported) - len(failures), failures


def _key(extractor: Extractor, photos: Sequence[Found], crops: int) -> str:
    """A hash of all that decides the descriptors; of the photos their names and sizes, to read them all takes long."""
    settings = [extractor.fingerprint, crops, SEED, SQUARE, SMALLEST]
    files = [[str(photo.name), _size(photo.path)] for photo in photos]
    return hashlib.sha256(json.dumps([settings, files]).encode()).hexdigest()


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None  # a link to nowhere, say: it will be among the failures
