"""Photos as small squares in one memory-mapped file, so that each is decoded once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from homing._io.files import create_memmap, write_atomically
from homing._io.parallel import parallel_map
from homing.errors import HomingError, PhotoError
from homing.photo import read_square


@dataclass(frozen=True)
class PhotoArray:
    """(N, 3, side, side) pixels of 8 bits, mapped from the disk, and a hash of their files."""

    pixels: np.ndarray
    fingerprint: str
    failures: list[str]

    def __len__(self) -> int:
        return len(self.pixels)


def load_photo_array(paths: Sequence[Path], side: int, folder: Path, report: Callable[[], None]) -> PhotoArray:
    """Photos squashed to squares, cached in `folder` for a second call; `report` is called per photo."""
    key = hashlib.sha256(repr((side, [(str(path), *_state(path)) for path in paths])).encode()).hexdigest()
    try:
        cached = _read(folder, key)
        if cached is None:
            _make(folder, key, paths, side, report)
            cached = _read(folder, key)
    except OSError as error:
        raise HomingError(f"cannot write the photos to {folder}: {error.strerror}") from error
    assert cached is not None
    return cached


def _read(folder: Path, key: str) -> PhotoArray | None:
    """The cached array for the same files, if it is complete."""
    try:
        about = json.loads((folder / "photos.json").read_text())
        pixels = np.load(folder / "photos.npy", mmap_mode="r")[: about["count"]]
        return PhotoArray(pixels, about["fingerprint"], about["failures"]) if about["key"] == key else None
    except (FileNotFoundError, EOFError, ValueError, KeyError, TypeError):
        return None


def _make(folder: Path, key: str, paths: Sequence[Path], side: int, report: Callable[[], None]) -> None:
    (folder / "photos.json").unlink(missing_ok=True)
    pixels = create_memmap(folder / "photos.npy", (len(paths), 3, side, side), np.uint8)
    digest, failures, count = hashlib.sha256(), [], 0
    for result in parallel_map(partial(read_square, side=side), list(paths)):
        report()
        if isinstance(result, PhotoError):
            failures.append(str(result))
            continue
        pixels[count] = result.pixels
        digest.update(result.sha256)
        count += 1
    if not count:
        raise HomingError(f"none of the {len(paths)} photos can be read; the first error: {failures[0]}")
    # Written last: an array without it is incomplete.
    about = {"key": key, "count": count, "fingerprint": digest.hexdigest(), "failures": failures}
    write_atomically(folder / "photos.json", json.dumps(about).encode())


def _state(path: Path) -> tuple[int, ...]:
    """Size and modification time."""
    try:
        return path.stat().st_size, path.stat().st_mtime_ns
    except OSError:
        return ()  # such as a broken link; it becomes a failure
