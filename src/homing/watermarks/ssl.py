"""Watermarks in the descriptors of a self-supervised network (Fernandez et al., ICASSP 2022).

A key draws one direction for each bit, orthogonal to each other, in the whitened space of descriptors. The message is
on which side of the origin a photo lies along each; its pixels move until it does, in copies as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from homing.activation import Recipe
from homing.activation.optimize import optimize
from homing.errors import HomingError
from homing.extractors import Extractor
from homing.objectives import Objective
from homing.perception import Budget
from homing.watermarks.settings import BITS
from homing.watermarks.training_edits import random_edit

RECIPE = Recipe(
    name="ssl",
    summary="SSL watermarking: one edited copy per step",
    constraint="image",
    steps=100,
    lr=0.05,
    eot_samples=2,
)
MARGIN = 3.2  # 5 read fewer copies of validation photos: the weakest bits are left behind for the others
_RIDGE = 0.01  # of the mean variance: directions in which photos hardly differ are not blown up without end


class SSLDecoder:
    """The decoder: along each of the key's directions, how far a photo's descriptor lies from the mean."""

    def __init__(self, extractor: Extractor, descriptors: np.ndarray, *, bits: int = BITS, key: int = 0) -> None:
        """Whitened on (N, D) descriptors of unrelated photos; another key gives other directions."""
        if not 1 <= bits <= extractor.dim or len(descriptors) < 2:
            raise HomingError(
                f"SSL watermarks take 1 to {extractor.dim} bits and at least 2 descriptors to whiten on, "
                f"got {bits} and {len(descriptors)}"
            )
        self.name, self.dim, self.size, self.device = "ssl", bits, extractor.size, extractor.device
        self._extractor = extractor
        rows = torch.from_numpy(np.array(descriptors, dtype=np.float64))
        directions = _whitening(rows) @ _orthogonal(extractor.dim, bits, key)
        self._directions = directions.float().to(self.device)
        self._mean = (rows.mean(dim=0) @ directions).float().to(self.device)
        digest = hashlib.sha256(f"{extractor.fingerprint} {bits} {key}".encode())
        digest.update(rows.numpy().tobytes())
        self.fingerprint = digest.hexdigest()

    def __call__(self, images: Tensor) -> Tensor:
        """One number for each bit, (B, bits), of (B, 3, H, W) images; of other photos they are about normal."""
        return self._extractor(images) @ self._directions - self._mean

    def resize(self, image: Tensor) -> Tensor:
        """One (3, H, W) image as the square the network sees."""
        return self._extractor.resize(image)


class SSLWatermark:
    """Watermarks that are written by the loop that activates photos, with another objective."""

    name = "ssl"

    def __init__(self, decoder: SSLDecoder, recipe: Recipe = RECIPE) -> None:
        self.decoder, self._recipe = decoder, recipe
        self.fingerprint = f"{decoder.fingerprint} {recipe!r} {MARGIN}"

    def changes(self, views: Sequence[Tensor], messages: Tensor, budget: Budget) -> list[Tensor]:
        """The change of each view that brings it, and copies of it, to its message's side of every direction."""
        return optimize(
            views,
            extractor=self.decoder,
            objective=Hinge(messages.to(self.decoder.device)),
            recipe=replace(self._recipe, budget=budget),
            edit=random_edit,
        )


class Hinge(Objective):
    """How far photos are from being a margin deep on the right side of every direction."""

    per_photo = ("_signs",)

    def __init__(self, messages: Tensor) -> None:
        self._signs = 2.0 * messages - 1

    def __call__(self, descriptors: Tensor) -> Tensor:
        """The mean over the bits of what the decoder gives, (B, bits): (B,)."""
        return (MARGIN - self._signs * descriptors).clamp_min(0).mean(dim=1)


def _whitening(rows: Tensor) -> Tensor:
    """(D, D): brings (N, D) descriptors, less their mean, to variance one in every direction."""
    variances, directions = torch.linalg.eigh(torch.cov(rows.T, correction=0))
    whitening: Tensor = directions / (variances.clamp_min(0) + _RIDGE * variances.mean() + 1e-12).sqrt()
    return whitening


def _orthogonal(dim: int, count: int, key: int) -> Tensor:
    """(dim, count) directions of unit length that a key draws."""
    drawn = torch.randn(dim, count, generator=torch.Generator().manual_seed(key), dtype=torch.float64)
    directions: Tensor = torch.linalg.qr(drawn).Q
    return directions
