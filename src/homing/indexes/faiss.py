"""The FAISS engine: codes and ids in memory, kept in one file."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np
from torch import Tensor

from homing.codebooks import Codebook

# Looking at this many codes takes about a millisecond; by default a search looks at no more.
FAST_CODES = 250_000


class FaissIndex:
    """References as codes of one codebook: grows, shrinks, is searched."""

    def __init__(self, codebook: Codebook, data: bytes | None = None) -> None:
        """An empty index, or the one kept in the bytes that `to_bytes` gave."""
        self._codebook = codebook
        self._store = codebook.new_faiss()
        if isinstance(self._store, faiss.IndexPreTransform):
            # The codebook turns queries and codes; what is inside is all that is filled and searched here.
            self._store = faiss.clone_index(faiss.downcast_index(self._store.index))
        if faiss.try_extract_index_ivf(self._store) is None:
            self._store = faiss.IndexIDMap2(self._store)  # cells keep ids themselves, flat codes do not
        if data is not None:
            self._store = faiss.deserialize_index(np.frombuffer(data, dtype=np.uint8))
        self._ivf: Any = faiss.try_extract_index_ivf(self._store)

    def __len__(self) -> int:
        return int(self._store.ntotal)

    @property
    def faiss(self) -> Any:
        """The FAISS index itself, as it is searched."""
        return self._store

    @property
    def code_size(self) -> int:
        """Bytes of one code, but for the cell that an index keeps by its place."""
        inner: Any = self._ivf if self._ivf is not None else faiss.downcast_index(self._store.index)
        return int(inner.code_size)

    def add(self, codes: np.ndarray, ids: np.ndarray) -> None:
        """Add references: their (N, bytes) codes and (N,) ids."""
        self._store.add_sa_codes(np.ascontiguousarray(codes), np.ascontiguousarray(ids, dtype=np.int64))

    def remove(self, ids: np.ndarray) -> None:
        """Drop references by id."""
        self._store.remove_ids(np.ascontiguousarray(ids, dtype=np.int64))

    def search(self, descriptors: Tensor, k: int, probes: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest references of (B, D) descriptors: distances (B, k) and ids (B, k), -1 where there are none."""
        if self._ivf is not None:
            self._ivf.nprobe = min(probes or self.fast_probes(), self._ivf.nlist)
        squared, ids = self._store.search(self._codebook.turn(descriptors), k)
        return np.sqrt(np.maximum(squared, 0)), ids

    def fast_probes(self) -> int:
        """As many probes as stay fast for an index of this size."""
        cells = self._ivf.nlist if self._ivf is not None else 1
        return int(min(cells, max(1, FAST_CODES * cells // max(len(self), 1))))

    def to_bytes(self) -> bytes:
        """The index as the bytes of one FAISS file."""
        data: bytes = faiss.serialize_index(self._store).tobytes()
        return data
