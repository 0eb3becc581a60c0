"""From a FAISS factory string to a quantiser that has learnt from descriptors."""

from __future__ import annotations

import re
from typing import Any

import faiss
import numpy as np

from homing.codebooks.quantiser import Quantiser
from homing.errors import CodebookError

FEWEST_LINKS = 8  # with fewer a graph loses much of what it holds, and FAISS crashes with 1
_TRIED = 1_000  # descriptors whose codes tell whether codes tell anything


def learnt(spec: str, descriptors: np.ndarray) -> Quantiser:
    """A quantiser of this spec that has learnt from (N, D) descriptors."""
    count, dim = descriptors.shape
    quantiser = untrained(spec, dim=dim, descriptors=count)
    _hurry(quantiser)
    try:
        quantiser.index.train(descriptors)
    except RuntimeError as error:
        reason = str(error).rpartition("failed: ")[2].strip()
        raise CodebookError(f"{spec} cannot be trained on {count} descriptors of {dim} dimensions: {reason}") from error
    quantiser = Quantiser(quantiser.index, spec)
    _refuse_one_code(quantiser, descriptors[:_TRIED], spec)
    return quantiser


def untrained(spec: str, *, dim: int, descriptors: int) -> Quantiser:
    """A quantiser of this spec; refuses a spec that makes no sense, or that needs more descriptors."""
    if re.search(r"(?<!\d)0+(?!\d)", spec):  # with which FAISS crashes, or keeps nothing
        raise CodebookError(f"'{spec}' asks for 0 of something; ask for at least 1")
    if any(int(links) < FEWEST_LINKS for links in re.findall(r"HNSW(\d+)", spec)):
        raise CodebookError(f"'{spec}' asks for a graph of too few links; ask for HNSW{FEWEST_LINKS} at least")
    try:
        quantiser = Quantiser(faiss.index_factory(dim, spec), spec)
    except RuntimeError as error:
        if "HNSW code description" in str(error):
            raise CodebookError(
                f"'{spec}': FAISS builds no graph over such codes; it does over PQ, SQ, RaBitQ and Flat"
            ) from error
        raise CodebookError(
            f"'{spec}' is no FAISS factory string for {dim}-d descriptors; docs/method.md lists the families, "
            "IVF1024,PQ8x8 is one"
        ) from error
    for each in quantiser.transforms:
        if isinstance(each, faiss.PCAMatrix | faiss.ITQTransform) and each.d_out > each.d_in:
            raise CodebookError(f"'{spec}' makes {each.d_out} dimensions of {each.d_in}; ask for {each.d_in} at most")
    # FAISS crashes over a rotation learnt from fewer descriptors than dimensions.
    rotated = [each.d_in for each in quantiser.transforms if isinstance(each, faiss.OPQMatrix)]
    needed = max(256, 0 if quantiser.ivf is None else quantiser.ivf.nlist, *rotated)
    if descriptors < needed:
        raise CodebookError(
            f"{spec} needs at least {needed} descriptors to learn from, got {descriptors}; "
            "give it more photos, or more crops of them with --descriptors"
        )
    return quantiser


def _refuse_one_code(quantiser: Quantiser, rows: np.ndarray, spec: str) -> None:
    """Refuse a quantiser that cannot tell what it has learnt from apart, such as SQ8_direct, made for whole numbers."""
    codes = quantiser.encode(rows)[:, -quantiser.codec.code_size :]  # the number of the cell stands before
    if np.unique(codes, axis=0, return_counts=True)[1].max() > 0.9 * len(codes):
        raise CodebookError(
            f"{spec} gives nearly all descriptors the same code; choose another spec, such as IVF1024,PQ8x8, or give "
            "it more photos that differ"
        )


def _hurry(quantiser: Quantiser) -> None:
    """Leave out of training what helps nobody here."""
    clusterings = []
    cells = [] if quantiser.ivf is None else [faiss.downcast_index(quantiser.ivf.quantizer)]
    for part in (quantiser.inner, quantiser.codec, *cells):
        learning = [part, getattr(part, "pq", None), getattr(part, "rq", None)]
        if many := getattr(part, "prq", None):
            cast: Any = faiss.downcast_Quantizer  # type: ignore[attr-defined]
            learning += [cast(many.subquantizer(place)) for place in range(many.nsplits)]
        clusterings += [each.cp for each in learning if hasattr(each, "cp")]
        if hasattr(part, "do_polysemous_training"):
            # It numbers codewords so that codes compare by their bits, which no index here does; it takes most of the
            # time.
            part.do_polysemous_training = False
    if hasattr(quantiser.codec, "pq"):
        rotations = [each for each in quantiser.transforms if isinstance(each, faiss.OPQMatrix)]
        clusterings += [_product(each, quantiser.codec.pq.nbits).cp for each in rotations]
    for clustering in clusterings:
        # FAISS warns, line after line, of fewer than 39 photos per centroid; whoever trains on so few knows.
        clustering.min_points_per_centroid = 1


def _product(rotation: Any, bits: int) -> Any:
    """The product quantiser that a rotation learns for: by itself one of 8 bits, whatever the codes have."""
    rotation.pq = product = faiss.ProductQuantizer(rotation.d_out, rotation.M, bits)
    rotation.referenced_objects = [product]
    return product
