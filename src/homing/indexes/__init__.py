"""Codebook, codes and ids together: what is searched."""

from homing.indexes.base import Index
from homing.indexes.faiss import FaissIndex
from homing.indexes.lance import LanceIndex
from homing.indexes.ranking import full_distances, rerank

__all__ = ["FaissIndex", "Index", "LanceIndex", "full_distances", "rerank"]
