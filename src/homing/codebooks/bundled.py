"""Load codebooks: those inside the package by name, with their distractors, and others from files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors, save as save_safetensors

from homing.codebooks.codebook import Codebook
from homing.errors import CodebookError, UnknownNameError

CodebookLike = str | os.PathLike[str] | Codebook
"""A codebook by name, by file, or itself."""
_DATA = files("homing.codebooks").joinpath("data")
_SUFFIX = ".codebook"
_DISTRACTORS_SUFFIX = ".distractors"


@dataclass(frozen=True)
class Distractors:
    """Distractors: codes (N, bytes) of unrelated photos, those of COCO train2017, and their image ids there (N,)."""

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


def available() -> list[str]:
    """The names of the codebooks inside the package."""
    names = (entry.name for entry in _DATA.iterdir())
    return sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))


def load(codebook: CodebookLike) -> Codebook:
    """The bundled codebook of this name, or the codebook in this file; a Codebook is returned unchanged."""
    if isinstance(codebook, Codebook):
        return codebook
    if not isinstance(codebook, str | os.PathLike):
        raise CodebookError(f"a codebook is given by name, file or as a Codebook, got {type(codebook).__name__}")
    name = os.fspath(codebook)
    if name in available():
        return _bundled(name)
    if Path(name).exists():
        return Codebook.read(Path(name))
    if name.endswith(_SUFFIX):
        raise CodebookError(f"no such file: {name}; homing codebook train writes one")
    raise UnknownNameError("codebook", name, [*available(), "FILE.codebook"])


@cache  # a codebook never changes
def _bundled(name: str) -> Codebook:
    return Codebook.from_bytes(_DATA.joinpath(name + _SUFFIX).read_bytes(), name)


def has_distractors(codebook: Codebook) -> bool:
    """Whether this is a bundled codebook; only those have bundled distractors."""
    return codebook.name in available() and load(codebook.name).fingerprint == codebook.fingerprint


def bundled_distractors(codebook: Codebook) -> Distractors:
    """The bundled distractors of a codebook."""
    entry = _DATA.joinpath(codebook.name + _DISTRACTORS_SUFFIX)
    if not has_distractors(codebook):
        raise CodebookError(f"codebook '{codebook.name}' has no distractors; bundled codebooks do")
    return Distractors.from_bytes(entry.read_bytes(), codebook, entry.name)
