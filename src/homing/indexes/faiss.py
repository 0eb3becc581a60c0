"""The FAISS engine: codes and ids in memory, kept in one file."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np
from torch import Tensor

from homing.codebooks import Codebook
from homing.indexes.stores import store_for

# Looking at this many codes takes about a millisecond; by default a search looks at no more.
FAST_CODES = 250_000
# How many references a graph leads to before it answers: FAISS's own 16 lose some. About 0.2 milliseconds.
REACH = 256
_CELLS_REACH = 16  # as where a code's cell is chosen: one probe must find the same


class FaissIndex:
    """References as codes of one codebook: grows, shrinks, is searched."""

    def __init__(self, codebook: Codebook, data: bytes | None = None) -> None:
        """An empty index, or the one kept in the bytes that `to_bytes` gave."""
        self._codebook = codebook
        self._store = store_for(codebook, data)

    def __len__(self) -> int:
        return len(self._store)

    @property
    def faiss(self) -> Any:
        """The FAISS index itself, as it is searched."""
        return self._store.searched

    @property
    def code_size(self) -> int:
        """Bytes that a reference takes: its code and, in a graph, its links."""
        return self._store.code_size

    def add(self, codes: np.ndarray, ids: np.ndarray) -> None:
        """Add references: their (N, bytes) codes and (N,) ids."""
        self._store.add(np.ascontiguousarray(codes), np.ascontiguousarray(ids, dtype=np.int64))

    def remove(self, ids: np.ndarray) -> None:
        """Drop references by id; a graph is built anew without them."""
        self._store.remove(np.ascontiguousarray(ids, dtype=np.int64))

    def search(self, descriptors: Tensor, k: int, probes: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest references of (B, D) descriptors: distances (B, k) and ids (B, k), -1 where there are none."""
        searched = self.faiss
        if self._codebook.has_cells:
            searched.nprobe = min(probes or self.fast_probes(), searched.nlist)
            _reach(searched.quantizer, max(_CELLS_REACH, 2 * searched.nprobe))
        else:
            _reach(searched.index, max(REACH, 2 * k))
        squared, ids = searched.search(self._codebook.turn(descriptors), k)
        return np.sqrt(np.maximum(squared, 0)), ids

    def fast_probes(self) -> int:
        """As many probes as stay fast for an index of this size."""
        cells = self._codebook.quantiser.ivf.nlist if self._codebook.has_cells else 1
        return int(min(cells, max(1, FAST_CODES * cells // max(len(self), 1))))

    def to_bytes(self) -> bytes:
        """The index as the bytes of one FAISS file."""
        return self._store.to_bytes()


def _reach(index: Any, count: int) -> None:
    """Let an index, if it is a graph, lead to so many before it answers."""
    graph: Any = faiss.downcast_index(index)
    if isinstance(graph, faiss.IndexHNSW):
        graph.hnsw.efSearch = count
