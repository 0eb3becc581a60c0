"""Distractors: codes of many unrelated photos."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors, save as save_safetensors

from homing.codebooks.codebook import Codebook
from homing.errors import CodebookError


@dataclass(frozen=True)
class Distractors:
    """Codes (N, bytes) of photos of COCO train2017 and their image ids there (N,)."""

    codes: np.ndarray
    coco_ids: np.ndarray

    def name(self, position: int) -> str:
        """The name of the photo at this position in a match."""
        return f"coco/{self.coco_ids[position]:012d}.jpg"

    def __len__(self) -> int:
        return len(self.codes)

    def to_bytes(self) -> bytes:
        """The distractors as the bytes of one safetensors file."""
        return save_safetensors({"codes": self.codes, "coco_ids": self.coco_ids})

    @classmethod
    def from_bytes(cls, data: bytes, codebook: Codebook, origin: str) -> Distractors:
        """The distractors in these bytes, which must be codes of this codebook."""
        try:
            tensors = load_safetensors(data)
            distractors = cls(tensors["codes"], tensors["coco_ids"])
        except (SafetensorError, KeyError) as error:
            raise CodebookError(f"{origin} does not hold distractors, or is damaged") from error
        if distractors.codes.shape[1] != codebook.code_size:
            raise CodebookError(f"{origin} holds codes of another codebook than '{codebook.name}'")
        return distractors
