"""Storage of codes by id in FAISS: plain, under an HNSW graph, or packed for fast scans."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np

from homing.codebooks import Codebook


class CodeStore:
    """Plain storage of codes: by cell in an inverted file, else in one list."""

    def __init__(self, codebook: Codebook, data: bytes | None) -> None:
        """An empty store, or the store in the bytes of `to_bytes`."""
        self._quantizer = codebook.quantizer
        self._index: Any = self._empty() if data is None else faiss.deserialize_index(np.frombuffer(data, np.uint8))

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def search_index(self) -> Any:
        """The FAISS index to search, with transformed descriptors."""
        return self._index

    @property
    def code_size(self) -> int:
        """Bytes per reference, without its id and its cell."""
        codec: Any = self._quantizer.codec
        return int(codec.code_size)

    def add(self, codes: np.ndarray, ids: np.ndarray) -> None:
        """Add (N, bytes) codes under (N,) ids."""
        self._index.add_sa_codes(codes, ids)

    def remove(self, ids: np.ndarray) -> None:
        """Remove the codes with these ids."""
        self._index.remove_ids(ids)

    def contents(self) -> tuple[np.ndarray, np.ndarray]:
        """The ids (N,) and codes (N, bytes) in the store, in no fixed order."""
        if self._quantizer.ivf is None:
            return faiss.vector_to_array(self._index.id_map), self._codes()
        lists, size = self._index.invlists, self._quantizer.codec.coarse_code_size()
        ids, codes = [], []
        for cell in range(lists.nlist):
            ids_in_cell, codes_in_cell = _in_cell(lists, cell)
            number = np.frombuffer(cell.to_bytes(size, "little"), np.uint8)
            ids.append(ids_in_cell)
            codes.append(np.concatenate([np.tile(number, (len(ids_in_cell), 1)), codes_in_cell], axis=1))
        return np.concatenate(ids), np.concatenate(codes)

    def _codes(self) -> np.ndarray:
        stored: Any = faiss.downcast_index(self._index.index)
        return _rows(stored.codes, len(self))

    def to_bytes(self) -> bytes:
        """The store as the bytes of one FAISS file."""
        data: bytes = faiss.serialize_index(self._index).tobytes()
        return data

    def _empty(self) -> Any:
        index = faiss.clone_index(self._quantizer.codec)
        # Inverted files store ids themselves.
        return index if self._quantizer.ivf is not None else faiss.IndexIDMap2(index)


class GraphStore(CodeStore):
    """Storage of codes under an HNSW graph.

    FAISS adds descriptors only, so decoded codes are added. Encoding them again gives the same codes except for RaBitQ,
    so the stored codes are overwritten with the original ones. FAISS cannot remove from a graph; it is rebuilt.
    """

    @property
    def code_size(self) -> int:
        """Bytes per reference with its links on the ground level, without its id."""
        return super().code_size + 4 * int(self._quantizer.inner.hnsw.nb_neighbors(0))

    def add(self, codes: np.ndarray, ids: np.ndarray) -> None:
        """Add (N, bytes) codes under (N,) ids."""
        self._index.add_with_ids(self._quantizer.codec.sa_decode(codes), ids)
        stored = self._storage.codes
        faiss.rev_swig_ptr(stored.data(), stored.size())[stored.size() - codes.size :] = codes.ravel()

    def remove(self, ids: np.ndarray) -> None:
        """Rebuild the graph without these ids."""
        stored, codes = self.contents()
        remaining = ~np.isin(stored, ids)
        if not remaining.all():
            self._index = self._empty()
            self.add(codes[remaining], stored[remaining])

    def _codes(self) -> np.ndarray:
        return _rows(self._storage.codes, len(self))

    @property
    def _storage(self) -> Any:
        graph: Any = faiss.downcast_index(self._index.index)
        return faiss.downcast_index(graph.storage)

    def _empty(self) -> Any:
        return faiss.IndexIDMap2(faiss.clone_index(self._quantizer.inner))


class PackedStore(CodeStore):
    """Storage of product codes for fast scans, which FAISS packs in blocks.

    FAISS adds descriptors only, whose cells may differ when they are computed again, and corrupts blocks to which it
    adds after a removal (FAISS 1.15). So plain codes are stored, and the first search after a change packs a copy.
    """

    def __init__(self, codebook: Codebook, data: bytes | None) -> None:
        super().__init__(codebook, data)
        self._packed: Any = None

    @property
    def search_index(self) -> Any:
        """The packed copy."""
        if self._packed is None:
            self._packed = self._pack()
        return self._packed

    def add(self, codes: np.ndarray, ids: np.ndarray) -> None:
        """Add (N, bytes) codes under (N,) ids."""
        super().add(codes, ids)
        self._packed = None

    def remove(self, ids: np.ndarray) -> None:
        """Remove the codes with these ids."""
        super().remove(ids)
        self._packed = None

    def _pack(self) -> Any:
        scanned: Any = self._quantizer.inner
        if self._quantizer.ivf is not None:
            return faiss.IndexIVFPQFastScan(self._index, scanned.bbs)
        plain: Any = faiss.downcast_index(self._index.index)
        packed = faiss.IndexPQFastScan(plain, scanned.bbs)
        under_ids: Any = faiss.IndexIDMap(faiss.clone_index(scanned))  # must be empty at first
        under_ids.index, under_ids.referenced_objects, under_ids.ntotal = packed, [packed], packed.ntotal
        faiss.copy_array_to_vector(faiss.vector_to_array(self._index.id_map), under_ids.id_map)
        return under_ids


def _rows(codes: Any, count: int) -> np.ndarray:
    rows: np.ndarray = faiss.vector_to_array(codes)
    return rows.reshape(count, -1)


def _in_cell(lists: Any, cell: int) -> tuple[np.ndarray, np.ndarray]:
    """The ids (N,) and codes (N, bytes), without the number of the cell, that an inverted file holds in a cell."""
    count = lists.list_size(cell)
    if count == 0:  # FAISS gives a null pointer
        return np.empty(0, dtype=np.int64), np.empty((0, lists.code_size), dtype=np.uint8)
    ids: np.ndarray = faiss.rev_swig_ptr(lists.get_ids(cell), count).copy()
    codes: np.ndarray = faiss.rev_swig_ptr(lists.get_codes(cell), count * lists.code_size).copy()
    return ids, codes.reshape(count, -1)


_STORES = {
    faiss.IndexPQFastScan: PackedStore,
    faiss.IndexHNSWFlat: GraphStore,
    faiss.IndexHNSWPQ: GraphStore,
    faiss.IndexHNSWSQ: GraphStore,
    faiss.IndexHNSWRaBitQ: GraphStore,
    faiss.IndexIVFPQFastScan: PackedStore,
}


def store_for(codebook: Codebook, data: bytes | None) -> CodeStore:
    """The store for a codebook's family, empty or from the bytes of `to_bytes`."""
    return _STORES.get(type(codebook.quantizer.inner), CodeStore)(codebook, data)
