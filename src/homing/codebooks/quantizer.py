"""A trained FAISS index taken apart: transforms, codec, and what codes keep."""

from __future__ import annotations

import threading
from typing import Any, Literal

import faiss
import numpy as np

from homing.errors import CodebookError

Family = Literal["codewords", "cells", "signs", "exact"]
SUPPORTED_FAMILIES = (
    "PQ, SQ, RQ, LSQ, PRQ, PLSQ, LSH, RaBitQ and Flat, HNSW over PQ, SQ, RaBitQ or Flat, and IVF with Flat, PQ, SQ, "
    "RQ, LSQ, PRQ, PLSQ or RaBitQ, each with or without OPQ, PCA or another linear transform before it"
)

# What an index stores of a descriptor. codewords: an approximation. cells: the cell and a nearly exact descriptor, so a
# copy is lost only when it falls into another cell. signs: its side of each of some planes. exact: the descriptor.
_FAMILIES: dict[type, Family] = {
    faiss.IndexPQ: "codewords",
    faiss.IndexScalarQuantizer: "codewords",
    faiss.IndexResidualQuantizer: "codewords",
    faiss.IndexLocalSearchQuantizer: "codewords",
    faiss.IndexProductResidualQuantizer: "codewords",
    faiss.IndexProductLocalSearchQuantizer: "codewords",
    faiss.IndexIVFPQ: "codewords",
    faiss.IndexIVFResidualQuantizer: "codewords",
    faiss.IndexIVFLocalSearchQuantizer: "codewords",
    faiss.IndexIVFProductResidualQuantizer: "codewords",
    faiss.IndexIVFProductLocalSearchQuantizer: "codewords",
    faiss.IndexIVFFlat: "cells",
    faiss.IndexIVFScalarQuantizer: "cells",
    faiss.IndexIVFRaBitQ: "cells",
    faiss.IndexLSH: "signs",
    faiss.IndexRaBitQ: "signs",
    faiss.IndexFlat: "exact",
    faiss.IndexFlatL2: "exact",
}
# Local search begins at random: with which others a descriptor is encoded would decide its code.
_ENCODED_SINGLY = (
    faiss.IndexLocalSearchQuantizer,
    faiss.IndexProductLocalSearchQuantizer,
    faiss.IndexIVFLocalSearchQuantizer,
    faiss.IndexIVFProductLocalSearchQuantizer,
)
_local_search = threading.Lock()  # FAISS keeps its times in one place for all threads
_GRAPHS = (faiss.IndexHNSWFlat, faiss.IndexHNSWPQ, faiss.IndexHNSWSQ, faiss.IndexHNSWRaBitQ)


class Quantizer:
    """Arrays in, arrays out: (N, D) descriptors, (N, bytes) codes.

    A FAISS index may begin with transforms; `inner` is what stands behind them. `codec` makes the codes: the storage of
    a graph, the plain form of what is packed for fast scans, else `inner` itself.
    """

    def __init__(self, index: Any, spec: str) -> None:
        self.index = index  # FAISS frees its parts with it
        self.transforms: list[Any] = []
        self.inner: Any = index
        if isinstance(index, faiss.IndexPreTransform):
            chain: Any = index.chain
            self.transforms = [faiss.downcast_VectorTransform(chain.at(i)) for i in range(chain.size())]
            self.inner = faiss.downcast_index(index.index)
        self.codec: Any = _codec(self.inner)
        self.ivf: Any = faiss.try_extract_index_ivf(self.inner)
        nested = self.ivf is not None and faiss.try_extract_index_ivf(self.ivf.quantizer) is not None
        if type(self.codec) not in _FAMILIES or nested:
            raise CodebookError(
                f"'{spec}' ({type(self.codec).__name__}) is of an unsupported family; supported are {SUPPORTED_FAMILIES}"
            )
        self.family: Family = _FAMILIES[type(self.codec)]
        if self.family != "signs" and any(map(_is_irreversible, self.transforms)):
            raise CodebookError(
                f"'{spec}' puts ITQ or whitening, from which there is no way back, before codes that are no signs"
            )
        self.decodes = not isinstance(self.codec, faiss.IndexLSH | faiss.IndexRaBitQ | faiss.IndexIVFRaBitQ)
        self.is_product = isinstance(self.codec, faiss.IndexPQ)

    def transform(self, rows: np.ndarray) -> np.ndarray:
        """Descriptors as `inner` sees them: after the rotation or projection that a spec may begin with."""
        for transform in self.transforms:
            rows = transform.apply(rows)
        return rows

    def inverse_transform(self, rows: np.ndarray) -> np.ndarray:
        """What `inner` sees, as descriptors again; a projection gives the nearest that there is."""
        for transform in reversed(self.transforms):
            rows = transform.reverse_transform(rows)
        return rows

    def encode(self, rows: np.ndarray) -> np.ndarray:
        """The codes an index stores; nothing is added anywhere."""
        transformed = self.transform(rows)
        if not isinstance(self.codec, _ENCODED_SINGLY):
            codes: np.ndarray = self.codec.sa_encode(transformed)
            return codes
        with _local_search:
            return np.concatenate([self.codec.sa_encode(part) for part in np.split(transformed, len(transformed))])

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """The descriptors that stand behind codes."""
        return self.inverse_transform(self.codec.sa_decode(codes))

    def codewords(self) -> np.ndarray:
        """Those of each sub-space of a product quantizer, as `inner` sees them: (M, 2^bits, d/M)."""
        product = self.codec.pq
        codewords: np.ndarray = faiss.vector_to_array(product.centroids)
        return codewords.reshape(product.M, product.ksub, product.dsub)

    def pq_codes(self, rows: np.ndarray) -> np.ndarray:
        """The numbers of the codewords that stand for descriptors: (N, M)."""
        product = self.codec.pq
        codes: np.ndarray = faiss.unpack_bitstrings(self.encode(rows), product.M, product.nbits)
        return codes.astype(np.int64)

    def cells(self, rows: np.ndarray) -> np.ndarray:
        """The cell each descriptor falls into: (N,)."""
        _, nearest = self.ivf.quantizer.search(self.transform(rows), 1)
        cells: np.ndarray = nearest[:, 0]
        return cells

    def centroids(self, rows: np.ndarray) -> np.ndarray:
        """The centers of the cells that descriptors fall into, as `inner` sees them."""
        centroids: np.ndarray = self.ivf.quantizer.reconstruct_batch(self.cells(rows))
        return centroids

    def sample_codes(self, cells: np.ndarray, count: int) -> np.ndarray:
        """Codes drawn at random, so many in each of (N,) cells and the same in all: (N · count, bytes)."""
        # As FAISS puts them together: the number of the cell, its lowest byte first, then the code.
        prefix = cells.astype("<i8")[:, None].view(np.uint8)[:, : self.ivf.coarse_code_size()]
        sampled = np.random.default_rng(0).integers(256, size=(count, self.codec.code_size), dtype=np.uint8)
        return np.hstack([prefix.repeat(count, axis=0), np.tile(sampled, (len(cells), 1))])

    def distances(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """How far an index finds each descriptor from the code of another: (N,)."""
        queries, references = self.comparison_points(rows, others)
        distances: np.ndarray = np.linalg.norm(queries - references, axis=1)
        return distances

    def comparison_points(self, rows: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points of descriptors and of the codes of others, as far from each other as an index finds those."""
        if isinstance(self.codec, faiss.IndexLSH):  # the square root of how many bits differ
            queries, references = (
                np.unpackbits(self.encode(each), axis=1).astype(np.float32) for each in (rows, others)
            )
            return queries, references
        if self.decodes:
            return rows, self.decode(self.encode(others))
        # RaBitQ's codes hold what it takes to estimate the distance itself
        return self.transform(rows), self.transform(others)


def _is_irreversible(transform: Any) -> bool:
    """Whether FAISS cannot undo it: ITQ, and a PCA that whitens."""
    return isinstance(transform, faiss.ITQTransform) or bool(getattr(transform, "eigen_power", 0))


def _codec(inner: Any) -> Any:
    if type(inner) in _GRAPHS:
        return faiss.downcast_index(inner.storage)
    plain: Any
    if type(inner) is faiss.IndexPQFastScan:
        plain = faiss.IndexPQ(inner.d, inner.M, inner.nbits)
    elif type(inner) is faiss.IndexIVFPQFastScan:
        # Read from a file it has lost its own way to decode (FAISS 1.15).
        plain = faiss.IndexIVFPQ(inner.quantizer, inner.d, inner.nlist, inner.M, inner.nbits)
        plain.by_residual = inner.by_residual
    else:
        return inner
    plain.pq, plain.is_trained = inner.pq, inner.is_trained
    return plain
