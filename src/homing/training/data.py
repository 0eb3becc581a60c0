"""Training data: photos as small squares, batches of them, and pairs of originals and edited copies."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from homing._io.files import create_memmap, write_atomically
from homing._io.parallel import parallel_map
from homing._tensors import to_device
from homing.edits import KINDS, Views, random_edits
from homing.errors import HomingError, PhotoError
from homing.photo import read_square
from homing.training.settings import COUNTS, EDIT_WEIGHTS, EDITS, FAMILY_WEIGHTS, WEAK_EDITS, DescriptorSettings

HELD_OUT = 1000
HELD_OUT_BATCH = 256
MIN_ORIGINAL_SIDE = 0.7  # an original is a random part of a photo with at least this share of each side

# Purposes of random numbers, which have separate seeds.
SPLIT, ORDER, EDITING, EVALUATION = range(4)
MAX_OWN_SHARE, MIN_OWN_SHARE = 0.8, 0.5  # of its own original in a blend


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


class Batches:
    """Training photos in batches of `count`; up to a tenth of the photos is held out."""

    def __init__(self, photos: PhotoArray, count: int, seed: int, device: torch.device) -> None:
        held_out_count = min(HELD_OUT, len(photos) // 10)
        if held_out_count < 2:
            raise HomingError(f"training needs at least 20 photos that can be read, got {len(photos)}")
        self.photos, self.device, self._seed = photos, device, seed
        order = self.rng(SPLIT).permutation(len(photos))
        self._held_out, self._train = order[:held_out_count], order[held_out_count:]
        self.count = min(count, len(self._train))
        self.per_epoch = len(self._train) // self.count

    def pixels(self, step: int) -> np.ndarray:
        """The (B, 3, S, S) bytes of one step; each epoch has its own order."""
        epoch, position = divmod(step, self.per_epoch)
        order = self.rng(ORDER, epoch).permutation(self._train)
        found: np.ndarray = self.photos.pixels[order[position * self.count : (position + 1) * self.count]]
        return found

    def originals(self, squares: np.ndarray, rng: np.random.Generator) -> Views:
        """Random parts of photos of random aspect ratio, half of them mirrored."""
        views = self._views(squares)
        generator = torch.Generator(self.device).manual_seed(int(rng.integers(2**62)))
        limits = [MIN_ORIGINAL_SIDE, -math.log(2), 0], [1, math.log(2), 1]
        side, ratio, mirrored = rng.uniform(*limits, (len(views), 3)).astype(np.float32).T.copy()
        parts = KINDS["part"].edit_views(views, to_device(side, self.device), generator)
        flipped = to_device(mirrored < 0.5, self.device)[:, None, None, None]
        return Views(torch.where(flipped, parts.pixels.flip(-1), parts.pixels), to_device(np.exp(ratio), self.device))

    def held_out(self) -> Iterator[tuple[Views, np.random.Generator]]:
        """The held-out photos, whole, in batches with fixed random numbers."""
        for start in range(0, len(self._held_out), HELD_OUT_BATCH):
            squares = self.photos.pixels[self._held_out[start : start + HELD_OUT_BATCH]]
            yield self._views(squares), self.rng(EVALUATION, start)

    def rng(self, purpose: int, number: int = 0) -> np.random.Generator:
        """The random numbers of a purpose and step."""
        return np.random.default_rng([self._seed, purpose, number])

    def _views(self, squares: np.ndarray) -> Views:
        pixels = to_device(squares, self.device).float() / 255
        return Views(pixels, torch.ones(len(pixels), device=self.device))


@dataclass(frozen=True)
class PairBatch:
    """Originals and copies (B, 3, S, S); where copies are blends, the share (B,) of its own original in each."""

    originals: Tensor
    copies: Tensor
    own_share: Tensor | None


class Pairs(Batches):
    """Batches of originals and randomly edited copies, determined by photos, settings and step."""

    def __init__(self, photos: PhotoArray, settings: DescriptorSettings, device: torch.device) -> None:
        super().__init__(photos, settings.pairs, settings.seed, device)
        self._mixup, self._weak_aug = settings.mixup, settings.weak_aug

    @torch.no_grad()
    def pairs(self, squares: np.ndarray, step: int, *, blend: bool = True) -> PairBatch:
        """The squares of a step, cut and edited; blended where the settings say so, or not at all."""
        rng = self.rng(EDITING, step)
        originals = self.originals(squares, rng)
        copies = _copies(originals, rng)
        anchors = self._weakly_edited(originals, rng)
        if not self._mixup or not blend:
            return PairBatch(anchors, copies, None)
        blended = rng.random(self.count) < self._mixup
        shares = np.where(blended, rng.uniform(MIN_OWN_SHARE, MAX_OWN_SHARE, self.count), 1)
        own_share = to_device(shares.astype(np.float32), self.device)
        return PairBatch(anchors, torch.lerp(copies.roll(-1, 0), copies, own_share[:, None, None, None]), own_share)

    def _weakly_edited(self, originals: Views, rng: np.random.Generator) -> Tensor:
        rows = to_device(np.flatnonzero(rng.random(self.count) < self._weak_aug), self.device)
        if not len(rows):
            return originals.pixels
        weak_aug = random_edits(originals[rows], WEAK_EDITS, rng, edit_weights=EDIT_WEIGHTS, counts=(1.0,))
        return originals.pixels.index_copy(0, rows, weak_aug.pixels)

    @torch.no_grad()
    def held_out_pairs(self) -> Iterator[PairBatch]:
        """The held-out photos, whole, and fixed copies of them."""
        for originals, rng in self.held_out():
            copies = _copies(originals, rng)
            yield PairBatch(originals.pixels, copies, None)


def _copies(originals: Views, rng: np.random.Generator) -> Tensor:
    """An edited copy of each original; the other originals surround copies in pages and collages."""
    return random_edits(
        originals,
        EDITS,
        rng,
        edit_weights=EDIT_WEIGHTS,
        family_weights=FAMILY_WEIGHTS,
        counts=COUNTS,
        surroundings=originals.pixels,
    ).pixels
