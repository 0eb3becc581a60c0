"""Watermarks in the descriptors of a self-supervised network (Fernandez et al., ICASSP 2022).

A key determines one direction per bit in the whitened space of descriptors, orthogonal to each other. Each bit is the
side of the origin on which a descriptor is along its direction; pixels are optimized until photo and copies have it.
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
from homing.training.settings import BITS
from homing.watermarks.base import random_edit

RECIPE = Recipe(
    name="ssl",
    summary="SSL watermarking: one edited copy per step",
    constraint="image",
    steps=100,
    lr=0.05,
    eot_samples=2,
)
MARGIN = 3.2  # with 5, fewer copies of validation photos are decoded: the weakest bits stay wrong
_RIDGE = 0.01  # of the mean variance; limits the scale of directions with little variance


class SSLDecoder:
    """The decoder: the distance of a descriptor from the mean along each of the key's directions."""

    def __init__(self, extractor: Extractor, descriptors: np.ndarray, *, bits: int = BITS, key: int = 0) -> None:
        """Whiten on (N, D) descriptors of unrelated photos. Another key gives other directions."""
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
        """One number per bit, (B, bits), for (B, 3, H, W) images; about normally distributed for other photos."""
        return self._extractor(images) @ self._directions - self._mean

    def resize(self, image: Tensor) -> Tensor:
        """Resize one (3, H, W) image to the network's input."""
        return self._extractor.resize(image)


class SSLWatermark:
    """Watermarks written by the optimization of activation, with another objective."""

    name = "ssl"

    def __init__(self, decoder: SSLDecoder, recipe: Recipe = RECIPE) -> None:
        self.decoder, self._recipe = decoder, recipe
        self.fingerprint = f"{decoder.fingerprint} {recipe!r} {MARGIN}"

    def changes(self, images: Sequence[Tensor], messages: Tensor, budget: Budget) -> list[Tensor]:
        """The change that gives each image, and copies of it, its message."""
        return optimize(
            images,
            extractor=self.decoder,
            objective=Hinge(messages.to(self.decoder.device)),
            recipe=replace(self._recipe, budget=budget),
            edit=random_edit,
        )


class Hinge(Objective):
    """Hinge loss: how far each bit is from the required margin on the correct side."""

    per_photo = ("_signs",)

    def __init__(self, messages: Tensor) -> None:
        self._signs = 2.0 * messages - 1

    def __call__(self, descriptors: Tensor) -> Tensor:
        """The mean loss over the bits of (B, bits) decoder outputs: (B,)."""
        return (MARGIN - self._signs * descriptors).clamp_min(0).mean(dim=1)


def _whitening(rows: Tensor) -> Tensor:
    """The (D, D) matrix that gives centered (N, D) descriptors variance one in every direction."""
    variances, directions = torch.linalg.eigh(torch.cov(rows.T, correction=0))
    whitening: Tensor = directions / (variances.clamp_min(0) + _RIDGE * variances.mean() + 1e-12).sqrt()
    return whitening


def _orthogonal(dim: int, count: int, key: int) -> Tensor:
    """Orthogonal directions (dim, count) of unit norm, determined by a key."""
    random = torch.randn(dim, count, generator=torch.Generator().manual_seed(key), dtype=torch.float64)
    directions: Tensor = torch.linalg.qr(random).Q
    return directions
