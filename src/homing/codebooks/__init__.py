"""Codebooks: frozen quantizers that determine the codes in an index."""

from homing.codebooks.bundled import CodebookLike, Distractors, available, bundled_distractors, has_distractors, load
from homing.codebooks.code_check import codes_match
from homing.codebooks.codebook import Codebook

__all__ = [
    "Codebook",
    "CodebookLike",
    "Distractors",
    "available",
    "bundled_distractors",
    "codes_match",
    "has_distractors",
    "load",
]


def __dir__() -> list[str]:
    return sorted(__all__)
