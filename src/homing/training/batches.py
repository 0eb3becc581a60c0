"""Batches of training photos, in an order that does not depend on interruptions."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch

from homing._io.device import to_device
from homing.edits.differentiable import DIFFERENTIABLE_EDITS, Views
from homing.errors import HomingError
from homing.training.photo_array import PhotoArray

HELD_OUT = 1000
HELD_OUT_BATCH = 256
MIN_ORIGINAL_SIDE = 0.7  # an original is a random part of a photo with at least this share of each side

# Purposes of random numbers, which have separate seeds.
SPLIT, ORDER, EDITING, EVALUATION = range(4)


class Batches:
    """Training photos in batches of `count`; up to a tenth of the photos is held out."""

    def __init__(self, squares: PhotoArray, count: int, seed: int, device: torch.device) -> None:
        held_out_count = min(HELD_OUT, len(squares) // 10)
        if held_out_count < 2:
            raise HomingError(f"training needs at least 20 photos that can be read, got {len(squares)}")
        self._squares, self._seed, self._device = squares, seed, device
        order = self.rng(SPLIT).permutation(len(squares))
        self._held_out, self._train = order[:held_out_count], order[held_out_count:]
        self.count = min(count, len(self._train))
        self.per_epoch = len(self._train) // self.count

    def squares(self, step: int) -> np.ndarray:
        """The (B, 3, S, S) bytes of one step; each epoch has its own order."""
        epoch, position = divmod(step, self.per_epoch)
        order = self.rng(ORDER, epoch).permutation(self._train)
        pixels: np.ndarray = self._squares.pixels[order[position * self.count : (position + 1) * self.count]]
        return pixels

    def originals(self, squares: np.ndarray, rng: np.random.Generator) -> Views:
        """Random parts of photos of random aspect ratio, half of them mirrored."""
        views = self._views(squares)
        generator = torch.Generator(self._device).manual_seed(int(rng.integers(2**62)))
        limits = [MIN_ORIGINAL_SIDE, -math.log(2), 0], [1, math.log(2), 1]
        side, ratio, mirrored = rng.uniform(*limits, (len(views), 3)).astype(np.float32).T.copy()
        parts = DIFFERENTIABLE_EDITS["fragment"](views, to_device(side, self._device), generator)
        flipped = to_device(mirrored < 0.5, self._device)[:, None, None, None]
        return Views(torch.where(flipped, parts.pixels.flip(-1), parts.pixels), to_device(np.exp(ratio), self._device))

    def held_out(self) -> Iterator[tuple[Views, np.random.Generator]]:
        """The held-out photos, whole, in batches with fixed random numbers."""
        for start in range(0, len(self._held_out), HELD_OUT_BATCH):
            squares = self._squares.pixels[self._held_out[start : start + HELD_OUT_BATCH]]
            yield self._views(squares), self.rng(EVALUATION, start)

    def rng(self, purpose: int, number: int = 0) -> np.random.Generator:
        """The random numbers of a purpose and step."""
        return np.random.default_rng([self._seed, purpose, number])

    def _views(self, squares: np.ndarray) -> Views:
        pixels = to_device(squares, self._device).float() / 255
        return Views(pixels, torch.ones(len(pixels), device=self._device))
