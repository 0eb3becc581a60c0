"""Codebook, codes and ids together: what is searched."""

from homing.indexes.faiss import FaissIndex

__all__ = ["FaissIndex"]
