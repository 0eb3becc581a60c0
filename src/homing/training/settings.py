"""All that decides what a descriptor network learns, but for the photos."""

from __future__ import annotations

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
"""The edits a copy goes through in training, with their strengths at the training size, where a photo is small."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a descriptor network is taught; the SSCD recipe, with its temperature and entropy left to choose."""

    init: str = "imagenet-lite0"
    dim: int = 512
    size: int = 224  # what the extractor will look at
    training_size: int = 192  # smaller is faster; a network taught on small photos sees larger ones better
    epochs: float = 20.0
    pairs: int = 1024  # originals in a batch, each with one copy
    temperature: float = 0.1
    koleo: float = 0.0
    cells: int = 0
    cell_weight: float = 0.1
    mixup: float = 0.0
    rate: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("dim", "pairs", "temperature", "epochs", "rate"):
            if not getattr(self, name) > 0:
                raise HomingError(f"{name} must be above 0, got {getattr(self, name):g}")
        for name in ("size", "training_size"):
            value = getattr(self, name)
            if value < 32 or value % 16:
                raise HomingError(f"{name} must be a multiple of 16 from 32 on, got {value}")
        for name in ("koleo", "cells", "cell_weight"):
            if not getattr(self, name) >= 0:
                raise HomingError(f"{name} must be 0 or above, got {getattr(self, name):g}")
        if not 0 <= self.mixup <= 1:
            raise HomingError(f"mixup is a share of the copies, from 0 to 1, got {self.mixup:g}")
        if self.pairs < 2:
            raise HomingError("a batch needs at least 2 pairs: copies are told apart from strangers")
