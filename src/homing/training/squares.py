"""Many photos as small squares in one file, so that each is decoded once and any of them can be had at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch.nn.functional as F

from homing._files import write_atomically
from homing._parallel import map_many
from homing.errors import HomingError, PhotoError
from homing.photo import Photo, read_file


@dataclass(frozen=True)
class Squares:
    """(N, side, side, 3) pixels of 8 bits, mapped from the disk, and a hash over the files they came from."""

    pixels: np.ndarray
    fingerprint: str
    failures: list[str]

    def __len__(self) -> int:
        return len(self.pixels)


def squares_of(paths: Sequence[Path], side: int, folder: Path, report: Callable[[], None]) -> Squares:
    """Photos squashed to squares, kept in `folder` for a second call; `report` is called per photo."""
    pixels_file, about_file = folder / "photos.npy", folder / "photos.json"
    key = hashlib.sha256(repr((side, [(str(path), path.stat().st_size) for path in paths])).encode()).hexdigest()
    if not about_file.is_file() or json.loads(about_file.read_text())["key"] != key:
        about_file.unlink(missing_ok=True)
        pixels = np.lib.format.open_memmap(pixels_file, "w+", dtype=np.uint8, shape=(len(paths), side, side, 3))
        fingerprint, failures = _fill(pixels, paths, side, report)
        pixels.flush()
        # Written last: a file of squares without it was cut off.
        about = {"key": key, "fingerprint": fingerprint, "failures": failures}
        write_atomically(about_file, json.dumps(about).encode())
    about = json.loads(about_file.read_text())
    count = len(paths) - len(about["failures"])
    return Squares(np.load(pixels_file, mmap_mode="r")[:count], about["fingerprint"], about["failures"])


def _fill(pixels: np.ndarray, paths: Sequence[Path], side: int, report: Callable[[], None]) -> tuple[str, list[str]]:
    """Squares of the photos that can be read, first to last; gives the hash over their files, and why others failed."""
    digest, failures, filled = hashlib.sha256(), [], 0
    for result in map_many(partial(_square, side=side), list(paths)):
        report()
        if isinstance(result, PhotoError):
            failures.append(str(result))
            continue
        pixels[filled], sha256 = result
        digest.update(sha256)
        filled += 1
    if not filled:
        raise HomingError(f"none of the {len(paths)} photos can be read; the first says: {failures[0]}")
    return digest.hexdigest(), failures


def _square(path: Path, side: int) -> tuple[np.ndarray, bytes] | PhotoError:
    """The (side, side, 3) bytes of a photo, and the hash of its file."""
    try:
        data = read_file(path)
        view = Photo.decode(data, str(path)).view()
    except PhotoError as error:
        return error
    if view.shape[-2:] != (side, side):
        view = F.interpolate(view[None], (side, side), mode="bilinear", antialias=True, align_corners=False)[0]
    return (view * 255).round().byte().permute(1, 2, 0).numpy(), hashlib.sha256(data).digest()
