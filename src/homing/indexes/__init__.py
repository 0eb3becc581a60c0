"""Indexes: codes and ids of references, searched with a codebook."""

from homing.indexes.base import Index, full_distances, rerank
from homing.indexes.faiss import FaissIndex
from homing.indexes.lance import LanceIndex

__all__ = ["FaissIndex", "Index", "LanceIndex", "full_distances", "rerank"]


def __dir__() -> list[str]:
    return sorted(__all__)
