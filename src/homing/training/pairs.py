"""What a descriptor network is shown: originals, and a copy of each that somebody might have made of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from homing._machine import send
from homing.edits.differentiable import Views, random_edits
from homing.training.batches import EDITING, Batches
from homing.training.settings import EDITS, MILD, OFTEN, Settings
from homing.training.squares import Squares

MOST_OWN, LEAST_OWN = 0.8, 0.5  # of its own original in a blend


@dataclass(frozen=True)
class Batch:
    """Originals and copies (B, 3, S, S); where copies are blends, the share (B,) of its own original in each."""

    originals: Tensor
    copies: Tensor
    own: Tensor | None


class Pairs:
    """The same photos, settings and step give the same batch, whenever training was interrupted."""

    def __init__(self, squares: Squares, settings: Settings, device: torch.device) -> None:
        self._batches = Batches(squares, settings.pairs, settings.seed, device)
        self._mixup, self._mild, self._device = settings.mixup, settings.mild, device
        self.count, self.per_epoch = self._batches.count, self._batches.per_epoch

    def squares(self, step: int) -> np.ndarray:
        """The (B, 3, S, S) bytes of one step."""
        return self._batches.squares(step)

    @torch.no_grad()
    def batch(self, squares: np.ndarray, step: int, *, blend: bool = True) -> Batch:
        """The squares of a step, cut and edited; blended where the settings say so, or not at all."""
        rng = self._batches.rng(EDITING, step)
        originals = self._batches.originals(squares, rng)
        copies = random_edits(originals, EDITS, rng, often=OFTEN).pixels
        shown = self._mildly_edited(originals, rng)
        if not self._mixup or not blend:
            return Batch(shown, copies, None)
        blended = rng.random(self.count) < self._mixup
        own = send(np.where(blended, rng.uniform(LEAST_OWN, MOST_OWN, self.count), 1).astype(np.float32), self._device)
        return Batch(shown, torch.lerp(copies.roll(-1, 0), copies, own[:, None, None, None]), own)

    def _mildly_edited(self, originals: Views, rng: np.random.Generator) -> Tensor:
        rows = send(np.flatnonzero(rng.random(self.count) < self._mild), self._device)
        if not len(rows):
            return originals.pixels
        mild = random_edits(originals[rows], MILD, rng, often=OFTEN, counts=(1.0,))
        return originals.pixels.index_copy(0, rows, mild.pixels)

    @torch.no_grad()
    def held_out(self) -> Iterator[Batch]:
        """Photos that are never taught, whole, and copies of them: always the same ones."""
        for originals, rng in self._batches.held_out():
            yield Batch(originals.pixels, random_edits(originals, EDITS, rng, often=OFTEN).pixels, None)
