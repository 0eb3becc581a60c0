"""Whether codes are those of descriptors that have been rounded since."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np

from homing.codebooks.codebook import Codebook
from homing.codebooks.quantiser import Quantiser

_EXACT = 1e-5  # what distances of single precision are off by
# These do not look for the nearest code but for a near one: rounding may lead them elsewhere.
_SEARCHING = ("ResidualQuantizer", "LocalSearchQuantizer")
_LOOSE = 0.1  # how much farther that may lie, as a share of the distance
_BITS = 0.1  # the share of signs that rounding may turn, in codes that are signs


def agree(codebook: Codebook, codes: np.ndarray, descriptors: np.ndarray) -> np.ndarray:
    """Whether each of (N, bytes) codes may be that of a descriptor whose rounding to fp16 is here (N, D): (N,) bool.

    Rounding moves a descriptor that lies on a border to its other side. So a code that is not the one of the rounded
    descriptor must lie as near as that, but for what rounding can make of a distance.
    """
    quantiser, rows = codebook.quantiser, descriptors.astype(np.float32)
    good: np.ndarray = (quantiser.encode(rows) == codes).all(axis=1)
    doubtful = ~good
    if doubtful.any():
        rounding = np.linalg.norm(np.spacing(np.abs(descriptors[doubtful])).astype(np.float32) / 2, axis=1)
        good[doubtful] = _as_near(quantiser, codes[doubtful], quantiser.turn(rows[doubtful]), 2 * rounding + _EXACT)
    return good


def _as_near(quantiser: Quantiser, codes: np.ndarray, turned: np.ndarray, slack: np.ndarray) -> np.ndarray:
    codec = quantiser.codec
    good: np.ndarray = np.ones(len(codes), dtype=bool)
    if quantiser.ivf is not None:
        cells = _cells(codes, codec)
        good = cells < codec.nlist
        cells[~good] = 0
        centres = codec.quantizer.reconstruct_batch(cells)
        nearest, _ = codec.quantizer.search(turned, 1)
        good &= _apart(turned, centres) <= np.sqrt(np.maximum(nearest[:, 0], 0)) + slack
        again = _encoded_in(cells, turned, codec)
        codes = np.where(good[:, None], codes, again)  # FAISS refuses cells that there are not
    else:
        again = codec.sa_encode(turned)
    if not quantiser.decodes:
        good &= np.unpackbits(_signs(codes, codec) ^ _signs(again, codec), axis=1).mean(axis=1) <= _BITS
        return good
    here, there = (_apart(turned, codec.sa_decode(np.ascontiguousarray(each))) for each in (codes, again))
    loose = _LOOSE if type(codec).__name__.endswith(_SEARCHING) else 0
    good &= here <= there * (1 + loose) + slack
    return good


def _signs(codes: np.ndarray, codec: Any) -> np.ndarray:
    """The bytes of codes that are signs: RaBitQ's have a cell before them and numbers behind."""
    if isinstance(codec, faiss.IndexLSH):
        return codes
    start = codec.sa_code_size() - codec.code_size
    return codes[:, start : start + (codec.d + 7) // 8]


def _cells(codes: np.ndarray, codec: Any) -> np.ndarray:
    """The numbers of their cells, which codes begin with."""
    size = codec.coarse_code_size()
    padded = np.zeros((len(codes), 8), dtype=np.uint8)
    padded[:, :size] = codes[:, :size]
    cells: np.ndarray = padded.view("<i8")[:, 0].copy()
    return cells


def _encoded_in(cells: np.ndarray, turned: np.ndarray, codec: Any) -> np.ndarray:
    """The codes that descriptors get in cells chosen for them."""
    codes = np.empty((len(cells), codec.sa_code_size()), dtype=np.uint8)
    pointers = (faiss.swig_ptr(each) for each in (np.ascontiguousarray(turned), cells, codes))
    codec.encode_vectors(len(cells), *pointers, True)
    return codes


def _apart(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    distances: np.ndarray = np.linalg.norm(rows - others, axis=1)
    return distances
