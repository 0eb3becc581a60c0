"""The FAISS factory string of an index, also of families for which FAISS itself has none."""

from __future__ import annotations

from typing import Any

import faiss
from faiss.contrib.factory_tools import reverse_index_factory

_NORM_SUFFIXES = {
    faiss.AdditiveQuantizer.ST_norm_float: "_Nfloat",
    faiss.AdditiveQuantizer.ST_norm_qint8: "_Nqint8",
    faiss.AdditiveQuantizer.ST_norm_qint4: "_Nqint4",
    faiss.AdditiveQuantizer.ST_norm_cqint8: "_Ncqint8",
    faiss.AdditiveQuantizer.ST_norm_cqint4: "_Ncqint4",
    faiss.AdditiveQuantizer.ST_norm_lsq2x4: "_Nlsq2x4",
    faiss.AdditiveQuantizer.ST_norm_rq2x4: "_Nrq2x4",
    faiss.AdditiveQuantizer.ST_LUT_nonorm: "_Nnone",
}


def factory_string(index: Any) -> str:
    """The factory string of an index; a part that has none is given by the name of its class."""
    index = faiss.downcast_index(index)
    if isinstance(index, faiss.IndexPreTransform):
        chain: Any = index.chain
        transforms = [faiss.downcast_VectorTransform(chain.at(i)) for i in range(chain.size())]
        return ",".join([*map(_transform_name, transforms), factory_string(index.index)])
    for attribute, name in (("rq", "RQ"), ("lsq", "LSQ"), ("prq", "PRQ"), ("plsq", "PLSQ")):
        if hasattr(index, attribute):
            return _cells_prefix(index) + _additive_name(getattr(index, attribute), name)
    try:
        name = str(reverse_index_factory(index))
    except (NotImplementedError, KeyError, AssertionError):  # what FAISS raises for families that it cannot name
        return type(index).__name__
    if isinstance(index, faiss.IndexIVFPQFastScan) and index.by_residual:
        return f"{name}r"
    if isinstance(index, faiss.IndexLSH) and index.nbits != index.d:
        return name.replace("LSH", f"LSH{index.nbits}")
    return name


def _cells_prefix(index: Any) -> str:
    """ "IVF16," of an index with 16 cells, as FAISS names them; empty without cells."""
    if not isinstance(index, faiss.IndexIVF):
        return ""
    cells = faiss.IndexIVFFlat(index.quantizer, index.d, index.nlist)
    return str(reverse_index_factory(cells)).removesuffix("Flat")


def _additive_name(quantizer: Any, name: str) -> str:
    bits = faiss.vector_to_array(quantizer.nbits).tolist()
    splits = getattr(quantizer, "nsplits", 1)
    steps, parts = bits[: len(bits) // splits], []
    while steps:  # steps of one size in a row are written together
        count = next((i for i, each in enumerate(steps) if each != steps[0]), len(steps))
        parts.append(f"{count}x{steps[0]}")
        steps = steps[count:]
    product = f"{splits}x" if name.startswith("P") else ""
    return f"{name}{product}{'_'.join(parts)}{_NORM_SUFFIXES.get(quantizer.search_type, '')}"


def _transform_name(transform: Any) -> str:
    width = transform.d_out
    if isinstance(transform, faiss.OPQMatrix):
        return f"OPQ{transform.M}" if width == transform.d_in else f"OPQ{transform.M}_{width}"
    if isinstance(transform, faiss.PCAMatrix):
        whitening, rotation = "W" * bool(transform.eigen_power), "R" * transform.random_rotation
        return f"PCA{whitening}{rotation}{width}"
    if isinstance(transform, faiss.ITQTransform):
        return f"ITQ{width}"
    if isinstance(transform, faiss.RandomRotationMatrix):
        return f"RR{width}"
    if isinstance(transform, faiss.NormalizationTransform):
        return "L2norm"
    return f"{type(transform).__name__}{width}"  # a file of FAISS keeps OPQ as a LinearTransform
