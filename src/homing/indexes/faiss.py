"""The FAISS engine: codes and ids in memory, kept in one file."""

from __future__ import annotations

from threading import Lock
from typing import Any

import faiss
import numpy as np
from torch import Tensor

from homing.codebooks import Codebook
from homing.errors import HomingError
from homing.indexes.base import fast_probes
from homing.indexes.ranking import merge
from homing.indexes.stores import store_for

# How many references a graph leads to before it answers: FAISS's own 16 lose some. About 0.2 milliseconds.
REACH = 256
# A search by margin looks into no more cells than this, however near their centres lie to each other.
MOST_CELLS = 64
_CELLS_REACH = 16  # as where a code's cell is chosen: one probe must find the same


class FaissIndex:
    """References as codes of one codebook: grows, shrinks, is searched. Safe to use from several threads."""

    def __init__(self, codebook: Codebook, data: bytes | None = None) -> None:
        """An empty index, or the one kept in the bytes that `to_bytes` gave."""
        self._codebook = codebook
        self._store = store_for(codebook, data)
        self._lock = Lock()  # FAISS takes no change while it searches, and keeps what a search asks for in the index

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
        with self._lock:
            self._store.add(np.ascontiguousarray(codes), np.ascontiguousarray(ids, dtype=np.int64))

    def remove(self, ids: np.ndarray) -> None:
        """Drop references by id; a graph is built anew without them."""
        with self._lock:
            self._store.remove(np.ascontiguousarray(ids, dtype=np.int64))

    def search(
        self, descriptors: Tensor, k: int, probes: int | None = None, margin: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest references of (B, D) descriptors: distances (B, k) and ids (B, k), -1 where there are none.

        Where the index holds fewer than k, that many are given.

        `probes` is how many cells are looked into; `margin`, in place of it, how much farther than the nearest centre,
        in squared distance, that of a cell may lie to be looked into. Of queries that are described T times, (B, T, D),
        each reference keeps its smallest distance.
        """
        with self._lock:
            k = min(k, max(len(self), 1))
            squared, ids = self._nearest(self._turned(descriptors), k, probes, margin)
        distances = np.sqrt(np.maximum(squared, 0))
        if descriptors.ndim == 2:
            return distances, ids
        shape = (*descriptors.shape[:2], k)
        return merge(distances.reshape(shape), ids.reshape(shape))

    def looked_at(self, descriptors: Tensor, probes: int | None = None, margin: float | None = None) -> np.ndarray:
        """How many codes (B,) a search for (B, D) or (B, T, D) descriptors compares, in an index that has cells."""
        cells = self.cells(descriptors, probes, margin)
        with self._lock:
            lists = self.faiss.invlists
            # The last is for cells left out.
            sizes = np.array([*(lists.list_size(cell) for cell in range(lists.nlist)), 0])
        counts: np.ndarray = sizes[cells].reshape(len(descriptors), -1).sum(axis=1)
        return counts

    def cells(self, descriptors: Tensor, probes: int | None = None, margin: float | None = None) -> np.ndarray:
        """The cells (N, C) that a search looks into, a row for each descriptor; -1 stands for those left out."""
        with self._lock:
            return self._cells(self._turned(descriptors), probes, margin)[1]

    def _nearest(
        self, turned: np.ndarray, k: int, probes: int | None, margin: float | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Squared distances (B, k) and ids (B, k)."""
        if self._codebook.has_cells or margin is not None:
            squared_to_centres, cells = self._cells(turned, probes, margin)
            squared, ids = self.faiss.search_preassigned(turned, k, cells, squared_to_centres)
        else:
            _reach(self.faiss.index, max(REACH, 2 * k))
            squared, ids = self.faiss.search(turned, k)
        return squared, ids

    def _turned(self, descriptors: Tensor) -> np.ndarray:
        return self._codebook.turn(descriptors.flatten(0, -2))

    def _cells(self, turned: np.ndarray, probes: int | None, margin: float | None) -> tuple[np.ndarray, np.ndarray]:
        """The cells (B, C) to look into, -1 for those left out, and the squared distances (B, C) of their centres."""
        if not self._codebook.has_cells:
            raise HomingError(f"'{self._codebook.spec}' has no cells to choose from; search without a margin")
        if margin is not None:
            _check(margin, probes)
        searched = self.faiss
        wanted = min(MOST_CELLS if margin is not None else probes or self.fast_probes(), searched.nlist)
        _reach(searched.quantizer, max(_CELLS_REACH, 2 * wanted))
        squared, cells = searched.quantizer.search(turned, wanted)
        if margin is not None:
            near = squared <= squared[:, :1].astype(float) + margin
            widest = int(near.sum(axis=1).max(initial=1))
            squared, cells = squared[:, :widest], np.where(near, cells, -1)[:, :widest]
        searched.nprobe = cells.shape[1]
        return squared, cells

    def fast_probes(self) -> int:
        """As many probes as stay fast for an index of this size."""
        return fast_probes(self._codebook.quantiser.ivf.nlist if self._codebook.has_cells else 1, len(self))

    def some(self, count: int, *, below: int) -> np.ndarray:
        """So many of the ids below a number, or all if there are fewer: chosen at random, always the same ones."""
        ids, _ = self.contents()
        own = np.sort(ids[ids < below])  # they come in no order
        chosen: np.ndarray = np.random.default_rng(0).permutation(own)[:count]
        return chosen

    def contents(self) -> tuple[np.ndarray, np.ndarray]:
        """The ids (N,) and codes (N, bytes) it holds, in no order."""
        with self._lock:
            return self._store.contents()

    def standalone(self) -> Any:
        """One FAISS index that needs nothing of homing: takes descriptors as they are, searches as `search` does."""
        index: Any = faiss.IndexPreTransform(self.faiss) if self._codebook.quantiser.transforms else self.faiss
        for transform in reversed(self._codebook.quantiser.transforms):
            index.prepend_transform(transform)
        if self._codebook.has_cells:
            self.faiss.nprobe = probes = self.fast_probes()
            _reach(self.faiss.quantizer, max(_CELLS_REACH, 2 * probes))
        else:
            _reach(self.faiss.index, REACH)
        return index

    def to_bytes(self) -> bytes:
        """The index as the bytes of one FAISS file."""
        with self._lock:
            return self._store.to_bytes()


def _reach(index: Any, count: int) -> None:
    """Let an index, if it is a graph, lead to so many before it answers."""
    graph: Any = faiss.downcast_index(index)
    if isinstance(graph, faiss.IndexHNSW):
        graph.hnsw.efSearch = count


def _check(margin: float, probes: int | None) -> None:
    if probes is not None:
        raise HomingError(f"a search goes by probes or by a margin, got both: {probes} and {margin:g}")
    if not margin >= 0:
        raise HomingError(f"a margin is a squared distance, 0 or more, got {margin:g}")
