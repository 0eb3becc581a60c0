"""The interface of watermarks, the identifier they hide, and the edits they are trained to survive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from homing.edits import Ranges, Views, random_edits
from homing.extractors import Extractor
from homing.perception import Budget

EDITS: Ranges = {
    "identity": None,
    "contrast": (0.5, 2.0),
    "brightness": (0.5, 2.0),
    "hue": (-0.25, 0.25),
    "blur": (0.2, 2.0),  # in pixels at the decoder's input size
    "jpeg": (30, 95),
    "rotation": (-90, 90),
    "crop": (0.3, 1.0),
    "resize": (0.2, 1.0),
    "meme": None,
}


class Watermark(Protocol):
    """A way to hide messages in photos, and to read them from copies.

    The decoder is an extractor whose descriptor is the message: one number for each bit, above zero where it is set.
    """

    name: str
    fingerprint: str
    """Hash of everything that determines the change of a photo."""

    @property
    def decoder(self) -> Extractor:
        """The decoder, which reads messages from copies."""
        ...

    def changes(self, images: Sequence[Tensor], messages: Tensor, budget: Budget) -> list[Tensor]:
        """The change of each (3, H, W) image that hides its message, a row of (B, bits) bool, within the budget."""
        ...


def identifier(sha256: str, bits: int) -> Tensor:
    """The message (bits,) of a photo: the last bits of the hash of its file, so no list is needed."""
    number = int(sha256, 16)
    return torch.tensor([bool(number >> i & 1) for i in range(bits)])


def random_edit(views: Views, rng: np.random.Generator) -> Views:
    """Apply one random edit to each view, all kinds equally often. Differentiable."""
    names = rng.permutation(list(EDITS)).tolist()
    parts = zip(names, np.array_split(np.arange(len(views)), len(names)), strict=True)
    edited = [
        random_edits(views[part[0] : part[-1] + 1], {name: EDITS[name]}, rng) for name, part in parts if len(part)
    ]
    return Views(torch.cat([each.pixels for each in edited]), torch.cat([each.ratio for each in edited]))
