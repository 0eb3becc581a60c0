"""What a network is shown: originals, and a copy of each that somebody might have made of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from homing._machine import send
from homing.edits.differentiable import TWINS, Views, random_edits
from homing.errors import HomingError
from homing.training.settings import EDITS, Settings
from homing.training.squares import Squares

HELD_OUT = 1000
HELD_OUT_BATCH = 256
WHOLE_SIDE = 0.7  # what passes for an original is a part of a photo, with at least this much of each side
MOST_OWN, LEAST_OWN = 0.8, 0.5  # of its own original in a blend

# Random numbers for different purposes must not be the same ones.
SPLIT, ORDER, EDITING, LOOKING = range(4)


@dataclass(frozen=True)
class Batch:
    """Originals and copies (B, 3, S, S); where copies are blends, the share (B,) of its own original in each."""

    originals: Tensor
    copies: Tensor
    own: Tensor | None


class Pairs:
    """The same photos, settings and step give the same batch, whenever training was interrupted."""

    def __init__(self, squares: Squares, settings: Settings, device: torch.device) -> None:
        held = min(HELD_OUT, len(squares) // 10)
        if held < 2:
            raise HomingError(f"training needs at least 20 photos that can be read, got {len(squares)}")
        self._squares, self._settings, self._device = squares, settings, device
        order = self._rng(SPLIT).permutation(len(squares))
        self._held, self._taught = order[:held], order[held:]
        self.count = min(settings.pairs, len(self._taught))
        self.per_epoch = len(self._taught) // self.count

    def squares(self, step: int) -> np.ndarray:
        """The (B, 3, S, S) bytes of one step; each epoch has its own order."""
        epoch, place = divmod(step, self.per_epoch)
        order = self._rng(ORDER, epoch).permutation(self._taught)
        pixels: np.ndarray = self._squares.pixels[order[place * self.count : (place + 1) * self.count]]
        return pixels

    @torch.no_grad()
    def batch(self, squares: np.ndarray, step: int) -> Batch:
        """The squares of a step, cut and edited."""
        rng = self._rng(EDITING, step)
        originals = self._cut(self._views(squares), rng)
        copies = random_edits(originals, EDITS, rng).pixels
        if not self._settings.mixup:
            return Batch(originals.pixels, copies, None)
        blended = rng.random(self.count) < self._settings.mixup
        own = send(np.where(blended, rng.uniform(LEAST_OWN, MOST_OWN, self.count), 1).astype(np.float32), self._device)
        return Batch(originals.pixels, torch.lerp(copies.roll(-1, 0), copies, own[:, None, None, None]), own)

    @torch.no_grad()
    def held_out(self) -> Iterator[Batch]:
        """Photos that are never taught, whole, and copies of them: always the same ones."""
        for start in range(0, len(self._held), HELD_OUT_BATCH):
            originals = self._views(self._squares.pixels[self._held[start : start + HELD_OUT_BATCH]])
            yield Batch(originals.pixels, random_edits(originals, EDITS, self._rng(LOOKING, start)).pixels, None)

    def _views(self, squares: np.ndarray) -> Views:
        pixels = send(squares, self._device).float() / 255
        return Views(pixels, torch.ones(len(pixels), device=self._device))

    def _cut(self, views: Views, rng: np.random.Generator) -> Views:
        """Parts of photos, some mirrored, of any shape: more photos to tell apart than there are."""
        generator = torch.Generator(self._device).manual_seed(int(rng.integers(2**62)))
        limits = [WHOLE_SIDE, -math.log(2), 0], [1, math.log(2), 1]
        side, ratio, mirrored = rng.uniform(*limits, (len(views), 3)).astype(np.float32).T.copy()
        parts = TWINS["fragment"](views, send(side, self._device), generator)
        flipped = send(mirrored < 0.5, self._device)[:, None, None, None]
        return Views(torch.where(flipped, parts.pixels.flip(-1), parts.pixels), send(np.exp(ratio), self._device))

    def _rng(self, purpose: int, number: int = 0) -> np.random.Generator:
        return np.random.default_rng([self._settings.seed, purpose, number])
