"""Settings of descriptor training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from homing.errors import HomingError

EDITS: dict[str, tuple[float, float] | None] = {
    "contrast": (0.4, 2.2),
    "brightness": (0.2, 2.2),
    "saturation": (0.0, 5.0),
    "hue": (-0.5, 0.5),
    "grayscale": None,
    "emoji": (0.4, 0.8),
    "text": (0.1, 0.3),
    "meme": None,
    "blur": (0.3, 4.0),
    "palette": (2, 16),
    "jpeg": (5, 80),
    "edges": None,
    "pixelate": (0.2, 0.6),
    "shuffle": (0.05, 0.3),
    "resize": (0.1, 1.0),
    "crop": (0.2, 1.0),
    "fragment": (0.3, 0.8),
    "flip": None,
    "aspect": (0.5, 2.0),
    "screenshot": None,
    "pad": None,
    "perspective": (20, 60),
    "rotation": (-180, 180),
}
"""Edits of copies in training, with ranges of strengths for photos at the training size."""

EDIT_WEIGHTS = {"rotation": 4.0, "fragment": 4.0, "crop": 3.0}
"""Relative frequency of an edit within its family (default 1)."""

WEAK_EDITS: dict[str, tuple[float, float] | None] = {
    "contrast": (0.5, 2.0),
    "brightness": (0.5, 2.0),
    "hue": (-0.2, 0.2),
    "blur": (0.3, 1.5),
    "jpeg": (30, 90),
    "resize": (0.3, 1.0),
    "crop": (0.5, 1.0),
    "rotation": (-90, 90),
}
"""Weak edits of originals."""


@dataclass(frozen=True, kw_only=True)
class DescriptorSettings:
    """Settings of descriptor training, by default close to SSCD's."""

    init: str = "imagenet-lite0"
    dim: int = 512
    size: int = 224  # input size of the extractor
    training_size: int = 192  # smaller is faster, and improves results at the larger input size
    epochs: float = 24.0
    pairs: int = 1024  # originals in a batch, each with one copy
    temperature: float = 0.1
    koleo: float = 0.0
    cells: int = 0
    cell_weight: float = 0.1
    mixup: float = 0.0
    weak_aug: float = 0.5  # share of the originals with one weak edit, so that both sides of a pair vary
    whiten: float = 0.35  # 0.5 is full whitening
    lr: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        check_limits(self, LIMITS)
        check_side("training_size", self.training_size)


LIMITS: dict[str, tuple[float, float]] = {
    "dim": (1, 16_384),
    "size": (32, 2048),
    "training_size": (32, 2048),
    "epochs": (0.01, 1e6),
    "pairs": (2, 1e6),  # the loss compares with other photos
    "temperature": (0.001, 10),
    "koleo": (0, 1000),
    "cells": (0, 1e6),
    "cell_weight": (0, 1000),
    "mixup": (0, 1),
    "weak_aug": (0, 1),
    "whiten": (0, 0.5),
    "lr": (1e-9, 1),
    "seed": (0, 2**62),
}


def check_limits(settings: object, limits: Mapping[str, tuple[float, float]]) -> None:
    """Refuse settings outside of their limits."""
    for name, (low, high) in limits.items():
        value = getattr(settings, name)
        if not low <= value <= high:
            raise HomingError(f"{_option(name)} takes a value from {low:g} to {high:g}, got {value:g}")


def check_side(name: str, side: int) -> None:
    """Refuse a side that is not a multiple of the JPEG edit's blocks."""
    if side % 16:
        raise HomingError(f"{_option(name)} must be a multiple of 16, got {side}")


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
