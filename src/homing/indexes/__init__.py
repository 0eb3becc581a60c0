"""Indexes: codes and ids of references, searched with a codebook."""

from homing._public import list_public
from homing.indexes.base import Index
from homing.indexes.faiss import FaissIndex
from homing.indexes.lance import LanceIndex
from homing.indexes.ranking import full_distances, rerank

__all__ = ["FaissIndex", "Index", "LanceIndex", "full_distances", "rerank"]

__dir__ = list_public(__name__)
