"""Codebook, codes and ids together: what is searched."""

from homing.indexes.faiss import FaissIndex
from homing.indexes.ranking import compare_again, full_distances

__all__ = ["FaissIndex", "compare_again", "full_distances"]
