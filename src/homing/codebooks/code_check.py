"""Check codes against the descriptors that are stored with them in half precision."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np

from homing.codebooks.codebook import Codebook
from homing.codebooks.quantizer import Quantizer

_TOLERANCE = 1e-5  # error of distances in single precision
# These search for a near code, not the nearest: rounding may change the result.
_APPROXIMATE = ("ResidualQuantizer", "LocalSearchQuantizer")
_APPROXIMATE_TOLERANCE = 0.1  # relative increase of the distance that is accepted
_MAX_FLIPPED_BITS = 0.1  # share of the bits of sign codes that rounding may flip


def codes_match(codebook: Codebook, codes: np.ndarray, descriptors: np.ndarray) -> np.ndarray:
    """Whether each of (N, bytes) codes belongs to the descriptor (N, D) that is given rounded to fp16: (N,) bool.

    Rounding can move a descriptor across a border between codes. A code that differs from the code of the rounded
    descriptor is accepted if it is as near, within the error that rounding can cause.
    """
    quantizer, rows = codebook.quantizer, descriptors.astype(np.float32)
    matches: np.ndarray = (quantizer.encode(rows) == codes).all(axis=1)
    doubtful = ~matches
    if doubtful.any():
        rounding = np.linalg.norm(np.spacing(np.abs(descriptors[doubtful])).astype(np.float32) / 2, axis=1)
        matches[doubtful] = _equally_near(
            quantizer, codes[doubtful], quantizer.transform(rows[doubtful]), 2 * rounding + _TOLERANCE
        )
    return matches


def _equally_near(quantizer: Quantizer, codes: np.ndarray, transformed: np.ndarray, slack: np.ndarray) -> np.ndarray:
    codec = quantizer.codec
    matches: np.ndarray = np.ones(len(codes), dtype=bool)
    if quantizer.ivf is not None:
        cells = _cells(codes, codec)
        matches = cells < codec.nlist
        cells[~matches] = 0
        centers = codec.quantizer.reconstruct_batch(cells)
        nearest, _ = codec.quantizer.search(transformed, 1)
        matches &= _row_distances(transformed, centers) <= np.sqrt(np.maximum(nearest[:, 0], 0)) + slack
        expected = _encoded_in(cells, transformed, codec)
        codes = np.where(matches[:, None], codes, expected)  # FAISS rejects cells that do not exist
    else:
        expected = codec.sa_encode(transformed)
    if not quantizer.decodes:
        matches &= (
            np.unpackbits(_signs(codes, codec) ^ _signs(expected, codec), axis=1).mean(axis=1) <= _MAX_FLIPPED_BITS
        )
        return matches
    distances, expected_distances = (
        _row_distances(transformed, codec.sa_decode(np.ascontiguousarray(each))) for each in (codes, expected)
    )
    tolerance = _APPROXIMATE_TOLERANCE if type(codec).__name__.endswith(_APPROXIMATE) else 0
    matches &= distances <= expected_distances * (1 + tolerance) + slack
    return matches


def _signs(codes: np.ndarray, codec: Any) -> np.ndarray:
    """The sign bits of codes; RaBitQ stores the cell before them and floats after them."""
    if isinstance(codec, faiss.IndexLSH):
        return codes
    start = codec.sa_code_size() - codec.code_size
    return codes[:, start : start + (codec.d + 7) // 8]


def _cells(codes: np.ndarray, codec: Any) -> np.ndarray:
    """The cells that codes begin with."""
    size = codec.coarse_code_size()
    padded = np.zeros((len(codes), 8), dtype=np.uint8)
    padded[:, :size] = codes[:, :size]
    cells: np.ndarray = padded.view("<i8")[:, 0].copy()
    return cells


def _encoded_in(cells: np.ndarray, transformed: np.ndarray, codec: Any) -> np.ndarray:
    """The codes of descriptors in given cells."""
    codes = np.empty((len(cells), codec.sa_code_size()), dtype=np.uint8)
    pointers = (faiss.swig_ptr(each) for each in (np.ascontiguousarray(transformed), cells, codes))
    codec.encode_vectors(len(cells), *pointers, True)
    return codes


def _row_distances(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    distances: np.ndarray = np.linalg.norm(rows - others, axis=1)
    return distances
