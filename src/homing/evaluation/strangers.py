"""Strangers by the hundred thousand: descriptors of crops of other people's photos, kept between runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from homing._files import new_array, write_atomically, writing
from homing.errors import HomingError, PhotoError
from homing.extractors import Extractor
from homing.extractors.crops import SEED, SMALLEST, describe_crops, square_side
from homing.photo import Found


@dataclass(frozen=True)
class Strangers:
    """Descriptors (N, D), half precision, on disk; how many distinct photos they are of; which could not be read."""

    descriptors: np.ndarray
    photos: int
    failures: list[str]


def find_strangers(
    extractor: Extractor, photos: Sequence[Found], count: int, folder: Path, advance: Callable[[], None]
) -> Strangers:
    """Descriptors of these photos, `count` if all can be read: those an earlier run left in the folder, or new ones.

    `advance` is called for each photo that is described.
    """
    file = folder / f"background-{_key(extractor, photos, count)[:16]}.npy"
    strangers = _kept(file)
    if strangers is None:
        _describe(file, extractor, [photo.path for photo in photos], count, advance)
        strangers = _kept(file)
        assert strangers is not None
    return strangers


def _kept(file: Path) -> Strangers | None:
    """What an earlier run left, if it is whole."""
    try:
        said = json.loads(file.with_suffix(".json").read_text())
        rows = np.lib.format.open_memmap(file, mode="r")
        return Strangers(rows[: said["count"]], said["photos"], said["failures"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _describe(file: Path, extractor: Extractor, paths: Sequence[Path], count: int, advance: Callable[[], None]) -> None:
    """Write the descriptors as they come, and beside them how many there are: what cannot be read leaves rows empty."""
    reported: list[PhotoError | None] = []

    def report(error: PhotoError | None) -> None:
        advance()
        reported.append(error)

    part = file.with_name(f".{file.name}.part")
    try:
        with writing(file):
            rows = new_array(part, (count, extractor.dim), np.float16)
        filled = 0
        for batch in describe_crops(extractor, paths, count, report):
            rows[filled : filled + len(batch)] = batch
            filled += len(batch)
        failures = [str(error) for error in reported if error is not None]
        if not filled:
            raise HomingError(
                f"none of the {len(failures)} background photos can be read; the first says: {failures[0]}"
            )
        said = {"count": filled, "photos": len(reported) - len(failures), "failures": failures}
        with writing(file):
            assert isinstance(rows, np.memmap)
            rows.flush()
            part.replace(file)
            write_atomically(file.with_suffix(".json"), json.dumps(said, indent=2).encode())
    finally:
        part.unlink(missing_ok=True)


def _key(extractor: Extractor, photos: Sequence[Found], count: int) -> str:
    """A hash of all that decides the descriptors; of the photos their names and sizes, to read them all takes long."""
    settings = [extractor.fingerprint, count, SEED, square_side(extractor), SMALLEST]
    files = [[str(photo.name), _size(photo.path)] for photo in photos]
    return hashlib.sha256(json.dumps([settings, files]).encode()).hexdigest()


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None  # a link to nowhere, say: it will be among the failures
