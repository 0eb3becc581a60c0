"""The transforms, codec and family of a FAISS index; its transforms as differentiable functions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import faiss
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from homing.errors import CodebookError

Transform = Callable[[Tensor], Tensor]
Family = Literal["codewords", "cells", "signs", "exact"]
SUPPORTED_FAMILIES = (
    "PQ, SQ, RQ, LSQ, PRQ, PLSQ, LSH, RaBitQ and Flat, HNSW over PQ, SQ, RaBitQ or Flat, and IVF with Flat, PQ, SQ, "
    "RQ, LSQ, PRQ, PLSQ or RaBitQ, each with or without OPQ, PCA or another linear transform before it"
)

# Families. codewords: codes approximate descriptors. cells: the cell and a nearly exact descriptor are stored, so a
# copy is lost only when it falls into another cell. signs: the side of several planes. exact: the descriptor itself.
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
# Local search starts from random numbers shared by the batch, so a code would depend on the rest of the batch.
_ENCODED_SINGLY = (
    faiss.IndexLocalSearchQuantizer,
    faiss.IndexProductLocalSearchQuantizer,
    faiss.IndexIVFLocalSearchQuantizer,
    faiss.IndexIVFProductLocalSearchQuantizer,
)
_local_search = threading.Lock()  # FAISS collects timings in a global that is not thread-safe
_GRAPHS = (faiss.IndexHNSWFlat, faiss.IndexHNSWPQ, faiss.IndexHNSWSQ, faiss.IndexHNSWRaBitQ)


class Quantizer:
    """Encodes (N, D) descriptors to (N, bytes) codes; NumPy arrays in and out.

    A FAISS index may begin with transforms; `inner` is the index after them. `codec` computes the codes: the storage of
    a graph, the plain equivalent of a fast-scan index, else `inner` itself.
    """

    def __init__(self, index: Any, spec: str) -> None:
        self.index = index  # FAISS frees its parts together with the index
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
                f"'{spec}' ({type(self.codec).__name__}) is of an unsupported family; "
                f"supported are {SUPPORTED_FAMILIES}"
            )
        self.family: Family = _FAMILIES[type(self.codec)]
        if self.family != "signs" and any(map(_is_irreversible, self.transforms)):
            raise CodebookError(
                f"'{spec}' has ITQ or whitening, which cannot be inverted, before codes that are not signs"
            )
        self.decodes = not isinstance(self.codec, faiss.IndexLSH | faiss.IndexRaBitQ | faiss.IndexIVFRaBitQ)

    def transform(self, rows: np.ndarray) -> np.ndarray:
        """Descriptors after the transforms, as `inner` takes them."""
        for transform in self.transforms:
            rows = transform.apply(rows)
        return rows

    def inverse_transform(self, rows: np.ndarray) -> np.ndarray:
        """The inverse of `transform`; of a projection, the nearest descriptor."""
        for transform in reversed(self.transforms):
            rows = transform.reverse_transform(rows)
        return rows

    def encode(self, rows: np.ndarray) -> np.ndarray:
        """The codes of descriptors."""
        transformed = self.transform(rows)
        if not isinstance(self.codec, _ENCODED_SINGLY):
            codes: np.ndarray = self.codec.sa_encode(transformed)
            return codes
        with _local_search:
            return np.concatenate([self.codec.sa_encode(part) for part in np.split(transformed, len(transformed))])

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """The reconstructions of codes."""
        return self.inverse_transform(self.codec.sa_decode(codes))

    def distances(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """The distance that an index gives from each descriptor to the code of another: (N,)."""
        queries, references = self.comparison_points(rows, others)
        distances: np.ndarray = np.linalg.norm(queries - references, axis=1)
        return distances

    def comparison_points(self, rows: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points for descriptors and for the codes of others, whose distances are those that an index gives."""
        if isinstance(self.codec, faiss.IndexLSH):  # the square root of the Hamming distance
            queries, references = (
                np.unpackbits(self.encode(each), axis=1).astype(np.float32) for each in (rows, others)
            )
            return queries, references
        if self.decodes:
            return rows, self.decode(self.encode(others))
        # RaBitQ estimates the distance itself from its codes
        return self.transform(rows), self.transform(others)


def affine(apply: Callable[[np.ndarray], np.ndarray], dim: int) -> tuple[np.ndarray, np.ndarray]:
    """The matrix (d, D) and shift (D,) of an affine function of (N, d) rows, from the zero vector and unit vectors."""
    shift = apply(np.zeros((1, dim), np.float32))
    return apply(np.eye(dim, dtype=np.float32)) - shift, shift[0]


def to_torch(transform: Any, device: torch.device) -> Transform:
    """A FAISS transform as a function of (B, d) rows of any precision."""
    if isinstance(transform, faiss.NormalizationTransform):
        return partial(F.normalize, dim=1)
    if isinstance(transform, faiss.ITQTransform):
        mean = torch.from_numpy(faiss.vector_to_array(transform.mean)).to(device)
        rotate = to_torch(transform.pca_then_itq, device)
        return lambda rows: rotate(F.normalize(rows - mean, dim=1))
    matrix, shift = (torch.from_numpy(each).to(device) for each in affine(transform.apply, transform.d_in))
    return lambda rows: rows @ matrix.to(rows.dtype) + shift


def compose(transforms: list[Transform]) -> Transform:
    """One transform after the other."""

    def composed(rows: Tensor) -> Tensor:
        for each in transforms:
            rows = each(rows)
        return rows

    return composed


def _is_irreversible(transform: Any) -> bool:
    """Whether FAISS cannot invert a transform: ITQ, and PCA with whitening."""
    return isinstance(transform, faiss.ITQTransform) or bool(getattr(transform, "eigen_power", 0))


def _codec(inner: Any) -> Any:
    if type(inner) in _GRAPHS:
        return faiss.downcast_index(inner.storage)
    plain: Any
    if type(inner) is faiss.IndexPQFastScan:
        plain = faiss.IndexPQ(inner.d, inner.M, inner.nbits)
    elif type(inner) is faiss.IndexIVFPQFastScan:
        # FAISS 1.15 cannot decode with one that was read from a file.
        plain = faiss.IndexIVFPQ(inner.quantizer, inner.d, inner.nlist, inner.M, inner.nbits)
        plain.by_residual = inner.by_residual
    else:
        return inner
    plain.pq, plain.is_trained = inner.pq, inner.is_trained
    return plain
