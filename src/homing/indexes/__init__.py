"""Indexes: codes and ids of references, searched with a codebook."""

from homing.indexes.base import Index
from homing.indexes.faiss import FaissIndex
from homing.indexes.lance import LanceIndex
from homing.indexes.ranking import full_distances, rerank

__all__ = ["FaissIndex", "Index", "LanceIndex", "full_distances", "rerank"]


def __dir__() -> list[str]:
    return sorted(__all__)
