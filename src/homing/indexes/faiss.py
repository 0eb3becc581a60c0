"""The FAISS engine: codes and ids in memory and in one file."""

from __future__ import annotations

from threading import Lock
from typing import Any

import faiss
import numpy as np
from torch import Tensor

from homing.codebooks import Codebook
from homing.errors import HomingError
from homing.indexes.base import default_nprobe, merge
from homing.indexes.stores import store_for

# efSearch of HNSW graphs: FAISS's default of 16 misses results. About 0.2 milliseconds.
EF_SEARCH = 256
# The most cells that a search by probe radius probes.
MAX_CELLS = 64
_CELLS_EF_SEARCH = 16  # as when a code's cell is chosen, so that one probe finds that cell


class FaissIndex:
    """An index in memory that supports addition, removal and search. Thread-safe."""

    def __init__(self, codebook: Codebook, data: bytes | None = None) -> None:
        """An empty index, or the index in the bytes of `to_bytes`."""
        self._codebook = codebook
        self._store = store_for(codebook, data)
        self._lock = Lock()  # FAISS cannot change during a search, and stores search parameters in the index

    def __len__(self) -> int:
        return len(self._store)

    @property
    def faiss(self) -> Any:
        """The FAISS index that is searched."""
        return self._store.search_index

    @property
    def code_size(self) -> int:
        """Bytes per reference: its code and, in a graph, its links."""
        return self._store.code_size

    def add(self, codes: np.ndarray, ids: np.ndarray) -> None:
        """Add references: their (N, bytes) codes and (N,) ids."""
        with self._lock:
            self._store.add(np.ascontiguousarray(codes), np.ascontiguousarray(ids, dtype=np.int64))

    def remove(self, ids: np.ndarray) -> None:
        """Remove references by id; a graph is rebuilt without them."""
        with self._lock:
            self._store.remove(np.ascontiguousarray(ids, dtype=np.int64))

    def search(
        self, descriptors: Tensor, k: int, probes: int | None = None, probe_radius: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest references of (B, D) descriptors: distances (B, k) and ids (B, k), padded with id -1.

        k is at most the number of references. `probes` is the number of cells to probe. `probe_radius` replaces it: a
        cell is probed if its centroid is at most this much farther, in squared distance, than the nearest centroid.
        For queries with T descriptors each, (B, T, D), each reference keeps its smallest distance.
        """
        with self._lock:
            k = min(k, max(len(self), 1))
            transformed = self._transformed(descriptors)
            if self._codebook.has_cells or probe_radius is not None:
                squared_to_centers, cells = self._cells(transformed, probes, probe_radius)
                squared, ids = self.faiss.search_preassigned(transformed, k, cells, squared_to_centers)
            else:
                _set_ef_search(self.faiss.index, max(EF_SEARCH, 2 * k))
                squared, ids = self.faiss.search(transformed, k)
        distances = np.sqrt(np.maximum(squared, 0))
        if descriptors.ndim == 2:
            return distances, ids
        shape = (*descriptors.shape[:2], k)
        return merge(distances.reshape(shape), ids.reshape(shape))

    def codes_scanned(
        self, descriptors: Tensor, probes: int | None = None, probe_radius: float | None = None
    ) -> np.ndarray:
        """The number of codes (B,) compared in a search for (B, D) or (B, T, D) descriptors, in an index with cells."""
        cells = self.cells(descriptors, probes, probe_radius)
        with self._lock:
            lists = self.faiss.invlists
            # The last size is for cells that are not probed (-1).
            sizes = np.array([*(lists.list_size(cell) for cell in range(lists.nlist)), 0])
        counts: np.ndarray = sizes[cells].reshape(len(descriptors), -1).sum(axis=1)
        return counts

    def cells(self, descriptors: Tensor, probes: int | None = None, probe_radius: float | None = None) -> np.ndarray:
        """The cells (N, C) that a search probes, one row per descriptor, padded with -1."""
        with self._lock:
            return self._cells(self._transformed(descriptors), probes, probe_radius)[1]

    def _transformed(self, descriptors: Tensor) -> np.ndarray:
        return self._codebook.transform(descriptors.flatten(0, -2))

    def _cells(
        self, transformed: np.ndarray, probes: int | None, probe_radius: float | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The squared distances (B, C) of the centroids of the cells to probe, and the cells (B, C), padded with -1."""
        if not self._codebook.has_cells:
            raise HomingError(f"'{self._codebook.spec}' has no cells; search without a probe radius")
        if probe_radius is not None:
            if probes is not None:
                raise HomingError(f"choose probes or a probe radius, got both: {probes} and {probe_radius:g}")
            if not probe_radius >= 0:
                raise HomingError(f"a probe radius is a squared distance of at least 0, got {probe_radius:g}")
        index = self.faiss
        wanted = min(MAX_CELLS if probe_radius is not None else probes or self.default_nprobe(), index.nlist)
        _set_ef_search(index.quantizer, max(_CELLS_EF_SEARCH, 2 * wanted))
        squared, cells = index.quantizer.search(transformed, wanted)
        if probe_radius is not None:
            near = squared <= squared[:, :1].astype(float) + probe_radius
            widest = int(near.sum(axis=1).max(initial=1))
            squared, cells = squared[:, :widest], np.where(near, cells, -1)[:, :widest]
        index.nprobe = cells.shape[1]
        return squared, cells

    def default_nprobe(self) -> int:
        """The number of probes that stays fast for the size of the index."""
        return default_nprobe(self._codebook.quantizer.ivf.nlist if self._codebook.has_cells else 1, len(self))

    def sample_ids(self, count: int, *, below: int) -> np.ndarray:
        """Up to `count` ids below `below`, sampled with a fixed seed."""
        ids, _ = self.contents()
        own = np.sort(ids[ids < below])  # in no fixed order
        chosen: np.ndarray = np.random.default_rng(0).permutation(own)[:count]
        return chosen

    def contents(self) -> tuple[np.ndarray, np.ndarray]:
        """The ids (N,) and codes (N, bytes) of all references, in no fixed order."""
        with self._lock:
            return self._store.contents()

    def standalone(self) -> Any:
        """A FAISS index for use without homing: takes descriptors and searches as `search` does."""
        index: Any = faiss.IndexPreTransform(self.faiss) if self._codebook.quantizer.transforms else self.faiss
        for transform in reversed(self._codebook.quantizer.transforms):
            index.prepend_transform(transform)
        if self._codebook.has_cells:
            self.faiss.nprobe = probes = self.default_nprobe()
            _set_ef_search(self.faiss.quantizer, max(_CELLS_EF_SEARCH, 2 * probes))
        else:
            _set_ef_search(self.faiss.index, EF_SEARCH)
        return index

    def to_bytes(self) -> bytes:
        """The index as the bytes of a FAISS file."""
        with self._lock:
            return self._store.to_bytes()


def _set_ef_search(index: Any, count: int) -> None:
    """Set efSearch of an index if it is an HNSW graph."""
    graph: Any = faiss.downcast_index(index)
    if isinstance(graph, faiss.IndexHNSW):
        graph.hnsw.efSearch = count
