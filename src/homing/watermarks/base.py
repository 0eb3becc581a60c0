"""The interface of watermarks, and the identifier they hide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from homing.extractors import Extractor
from homing.perception import Budget


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
