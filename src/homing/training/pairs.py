"""Training pairs: originals and randomly edited copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from homing._io.device import to_device
from homing.edits.differentiable import Views, random_edits
from homing.training.batches import EDITING, Batches
from homing.training.photo_array import PhotoArray
from homing.training.settings import EDIT_WEIGHTS, EDITS, WEAK_EDITS, DescriptorSettings

MAX_OWN_SHARE, MIN_OWN_SHARE = 0.8, 0.5  # of its own original in a blend


@dataclass(frozen=True)
class PairBatch:
    """Originals and copies (B, 3, S, S); where copies are blends, the share (B,) of its own original in each."""

    originals: Tensor
    copies: Tensor
    own_share: Tensor | None


class Pairs:
    """Batches of pairs, determined by photos, settings and step."""

    def __init__(self, squares: PhotoArray, settings: DescriptorSettings, device: torch.device) -> None:
        self._batches = Batches(squares, settings.pairs, settings.seed, device)
        self._mixup, self._weak_aug, self._device = settings.mixup, settings.weak_aug, device
        self.count, self.per_epoch = self._batches.count, self._batches.per_epoch

    def squares(self, step: int) -> np.ndarray:
        """The (B, 3, S, S) bytes of one step."""
        return self._batches.squares(step)

    @torch.no_grad()
    def batch(self, squares: np.ndarray, step: int, *, blend: bool = True) -> PairBatch:
        """The squares of a step, cut and edited; blended where the settings say so, or not at all."""
        rng = self._batches.rng(EDITING, step)
        originals = self._batches.originals(squares, rng)
        copies = random_edits(originals, EDITS, rng, edit_weights=EDIT_WEIGHTS).pixels
        anchors = self._weakly_edited(originals, rng)
        if not self._mixup or not blend:
            return PairBatch(anchors, copies, None)
        blended = rng.random(self.count) < self._mixup
        own_share = to_device(
            np.where(blended, rng.uniform(MIN_OWN_SHARE, MAX_OWN_SHARE, self.count), 1).astype(np.float32), self._device
        )
        return PairBatch(anchors, torch.lerp(copies.roll(-1, 0), copies, own_share[:, None, None, None]), own_share)

    def _weakly_edited(self, originals: Views, rng: np.random.Generator) -> Tensor:
        rows = to_device(np.flatnonzero(rng.random(self.count) < self._weak_aug), self._device)
        if not len(rows):
            return originals.pixels
        weak_aug = random_edits(originals[rows], WEAK_EDITS, rng, edit_weights=EDIT_WEIGHTS, counts=(1.0,))
        return originals.pixels.index_copy(0, rows, weak_aug.pixels)

    @torch.no_grad()
    def held_out(self) -> Iterator[PairBatch]:
        """The held-out photos, whole, and fixed copies of them."""
        for originals, rng in self._batches.held_out():
            yield PairBatch(
                originals.pixels, random_edits(originals, EDITS, rng, edit_weights=EDIT_WEIGHTS).pixels, None
            )
