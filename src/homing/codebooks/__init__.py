"""Frozen quantisers: what an index stores of a descriptor."""

from homing.codebooks.agreement import agree
from homing.codebooks.background import Background
from homing.codebooks.bundled import available, bundled_background, has_background, load
from homing.codebooks.codebook import Codebook

__all__ = ["Background", "Codebook", "agree", "available", "bundled_background", "has_background", "load"]
