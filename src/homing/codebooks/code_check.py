"""Whether codes are those of descriptors that have been rounded since."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np

from homing.codebooks.codebook import Codebook
from homing.codebooks.quantizer import Quantizer

_TOLERANCE = 1e-5  # what distances of single precision are off by
# These do not look for the nearest code but for a near one: rounding may lead them elsewhere.
_APPROXIMATE = ("ResidualQuantizer", "LocalSearchQuantizer")
_APPROXIMATE_TOLERANCE = 0.1  # how much farther that may lie, as a share of the distance
_MAX_FLIPPED_BITS = 0.1  # the share of signs that rounding may turn, in codes that are signs


def codes_match(codebook: Codebook, codes: np.ndarray, descriptors: np.ndarray) -> np.ndarray:
    """Whether each of (N, bytes) codes may be that of a descriptor whose rounding to fp16 is here (N, D): (N,) bool.

    Rounding moves a descriptor that lies on a border to its other side. So a code that is not the one of the rounded
    descriptor must lie as near as that, but for what rounding can make of a distance.
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
        codes = np.where(matches[:, None], codes, expected)  # FAISS refuses cells that there are not
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


def _encoded_in(cells: np.ndarray, transformed: np.ndarray, codec: Any) -> np.ndarray:
    """The codes that descriptors get in cells chosen for them."""
    codes = np.empty((len(cells), codec.sa_code_size()), dtype=np.uint8)
    pointers = (faiss.swig_ptr(each) for each in (np.ascontiguousarray(transformed), cells, codes))
    codec.encode_vectors(len(cells), *pointers, True)
    return codes


def _row_distances(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    distances: np.ndarray = np.linalg.norm(rows - others, axis=1)
    return distances
