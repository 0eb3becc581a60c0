"""The codes of many unrelated photos: strangers to search among."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors

from homing.codebooks.codebook import Codebook
from homing.errors import CodebookError


@dataclass(frozen=True)
class Background:
    """Codes (N, bytes) of photos of COCO train2017 and their numbers there (N,)."""

    codes: np.ndarray
    numbers: np.ndarray

    def name(self, position: int) -> str:
        """How the photo at this position is called in a match."""
        return f"coco/{self.numbers[position]:012d}.jpg"

    def __len__(self) -> int:
        return len(self.codes)

    def to_bytes(self) -> bytes:
        """The background as the bytes of one safetensors file."""
        return save_safetensors({"codes": self.codes, "numbers": self.numbers})

    @classmethod
    def from_bytes(cls, data: bytes, codebook: Codebook, origin: str) -> Background:
        """The background kept in these bytes, which must hold codes of this codebook."""
        try:
            tensors = load_safetensors(data)
            background = cls(tensors["codes"], tensors["numbers"])
        except (SafetensorError, KeyError) as error:
            raise CodebookError(f"{origin} is not a background, or is damaged") from error
        if background.codes.shape[1] != codebook.code_size:
            raise CodebookError(f"{origin} holds codes of another codebook than '{codebook.name}'")
        return background
