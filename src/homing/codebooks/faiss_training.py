"""Train the quantizer of a FAISS factory string."""

from __future__ import annotations

import re
from typing import Any

import faiss
import numpy as np

from homing.codebooks.quantizer import Quantizer
from homing.errors import CodebookError

MIN_GRAPH_LINKS = 8  # with fewer, searches in a graph lose many results, and FAISS crashes with 1
_SAMPLE_SIZE = 1_000  # descriptors whose codes are compared


def train_quantizer(spec: str, descriptors: np.ndarray) -> Quantizer:
    """A quantizer of this spec, trained on (N, D) descriptors."""
    count, dim = descriptors.shape
    quantizer = build_quantizer(spec, dim=dim, descriptors=count)
    _skip_needless_training(quantizer)
    try:
        quantizer.index.train(descriptors)
    except RuntimeError as error:
        reason = str(error).rpartition("failed: ")[2].strip()
        raise CodebookError(f"{spec} cannot be trained on {count} descriptors of {dim} dimensions: {reason}") from error
    quantizer = Quantizer(quantizer.index, spec)
    refuse_one_code(quantizer, descriptors, spec)
    return quantizer


def build_quantizer(spec: str, *, dim: int, descriptors: int) -> Quantizer:
    """An untrained quantizer of this spec; refuses an invalid spec and too few descriptors."""
    if re.search(r"(?<!\d)0+(?!\d)", spec):  # FAISS crashes, or stores nothing
        raise CodebookError(f"'{spec}' has a count of 0; expected at least 1")
    if any(int(links) < MIN_GRAPH_LINKS for links in re.findall(r"HNSW(\d+)", spec)):
        raise CodebookError(f"'{spec}' has a graph with too few links; expected at least HNSW{MIN_GRAPH_LINKS}")
    try:
        quantizer = Quantizer(faiss.index_factory(dim, spec), spec)
    except RuntimeError as error:
        if "HNSW code description" in str(error):
            raise CodebookError(f"'{spec}': FAISS supports HNSW over PQ, SQ, RaBitQ and Flat only") from error
        raise CodebookError(
            f"'{spec}' is not a FAISS factory string for {dim}-d descriptors, such as IVF1024,PQ8x8; "
            "docs/explanation/method.md lists the families"
        ) from error
    for each in quantizer.transforms:
        if isinstance(each, faiss.PCAMatrix | faiss.ITQTransform) and each.d_out > each.d_in:
            raise CodebookError(
                f"'{spec}' increases {each.d_in} dimensions to {each.d_out}; expected at most {each.d_in}"
            )
    # FAISS crashes on an OPQ rotation trained on fewer descriptors than dimensions.
    rotated = [each.d_in for each in quantizer.transforms if isinstance(each, faiss.OPQMatrix)]
    needed = max(256, 0 if quantizer.ivf is None else quantizer.ivf.nlist, *rotated)
    if descriptors < needed:
        raise CodebookError(
            f"{spec} needs at least {needed} training descriptors, got {descriptors}; "
            "give it more photos, or more crops of them with --descriptors"
        )
    return quantizer


def refuse_one_code(quantizer: Quantizer, rows: np.ndarray, spec: str) -> None:
    """Refuse a quantizer that gives nearly all descriptors one code, as SQ8_direct (for integers) does."""
    codes = quantizer.encode(rows[:_SAMPLE_SIZE])[:, -quantizer.codec.code_size :]  # without the cell
    if np.unique(codes, axis=0, return_counts=True)[1].max() > 0.9 * len(codes):
        raise CodebookError(
            f"{spec} gives nearly all descriptors the same code; choose another spec, such as IVF1024,PQ8x8, or give "
            "it more photos that differ"
        )


def _skip_needless_training(quantizer: Quantizer) -> None:
    """Turn off parts of FAISS's training that are not needed, and its warnings about few photos."""
    clusterings = []
    cells = [] if quantizer.ivf is None else [faiss.downcast_index(quantizer.ivf.quantizer)]
    for part in (quantizer.inner, quantizer.codec, *cells):
        learning = [part, getattr(part, "pq", None), getattr(part, "rq", None)]
        if many := getattr(part, "prq", None):
            cast: Any = faiss.downcast_Quantizer  # type: ignore[attr-defined]
            learning += [cast(many.subquantizer(i)) for i in range(many.nsplits)]
        clusterings += [each.cp for each in learning if hasattr(each, "cp")]
        if hasattr(part, "do_polysemous_training"):
            # Polysemous training, for comparing codes by Hamming distance, is not used and takes most of the time.
            part.do_polysemous_training = False
    if hasattr(quantizer.codec, "pq"):
        rotations = [each for each in quantizer.transforms if isinstance(each, faiss.OPQMatrix)]
        clusterings += [_product_quantizer(each, quantizer.codec.pq.nbits).cp for each in rotations]
    for clustering in clusterings:
        # FAISS prints a warning per clustering with fewer than 39 photos per centroid.
        clustering.min_points_per_centroid = 1


def _product_quantizer(rotation: Any, bits: int) -> Any:
    """The product quantizer that OPQ is trained for; by default FAISS uses 8 bits, whatever the spec has."""
    rotation.pq = product = faiss.ProductQuantizer(rotation.d_out, rotation.M, bits)
    rotation.referenced_objects = [product]
    return product
