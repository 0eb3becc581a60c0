"""Codebooks from FAISS indexes trained elsewhere: the index is checked, emptied, and its null distribution measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch
from faiss.contrib.factory_tools import reverse_index_factory
from torch import Tensor

from homing.codebooks.bundled import available, bundled_distractors, load
from homing.codebooks.codebook import Codebook
from homing.codebooks.faiss_training import refuse_one_code
from homing.codebooks.null_distribution import NullDistribution, PairDistances
from homing.codebooks.quantizer import SUPPORTED_FAMILIES, Quantizer
from homing.errors import CodebookError
from homing.extractors import Extractor

_SAMPLE_SIZE = 2_000  # distractors of which the null distribution of codes is measured
_MAX_NORM_ERROR = 0.01
_MIN_DESCRIPTORS = 2
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


def import_index(
    index: Any, extractor: Extractor, *, name: str | None = None, descriptors: Tensor | np.ndarray | None = None
) -> Codebook:
    """The codebook of a trained FAISS index, or of a file of one; see `Codebook.from_faiss`."""
    if isinstance(index, str | Path):
        name = name or Path(index).stem
        index = _read(Path(index))
    trained = _trained_index(index)  # FAISS frees it together with `index`
    emptied = _without_vectors(trained)
    if emptied.d != extractor.dim:
        raise CodebookError(
            f"the index has {emptied.d} dimensions, descriptors of extractor '{extractor.name}' have {extractor.dim}"
        )
    spec = factory_string(trained)  # of the original: a copy has lost the kind of some transforms
    quantizer = Quantizer(emptied, spec)
    _check_metrics(quantizer)
    if descriptors is None:
        null_distribution = _bundled_null_distribution(quantizer, extractor, spec)
    else:
        rows = _check_descriptors(descriptors, extractor)
        refuse_one_code(quantizer, rows, spec)
        null_distribution = NullDistribution.measure(quantizer, rows)
    return Codebook(
        faiss.serialize_index(emptied).tobytes(),
        null_distribution,
        name=name or spec,
        spec=spec,
        extractor=extractor.name,
        extractor_fingerprint=extractor.fingerprint,
    )


def _read(path: Path) -> Any:
    if not path.is_file():
        raise CodebookError(f"no such file: {path}")
    try:
        return faiss.read_index(str(path))
    except RuntimeError as error:
        raise CodebookError(f"{path} is not a FAISS index of float vectors: {error}") from error


def _trained_index(index: Any) -> Any:
    """The index below its ids, if it is trained and in CPU memory."""
    if type(index).__name__.startswith("GpuIndex"):
        raise CodebookError("the index is on a GPU; pass faiss.index_gpu_to_cpu(index)")
    if isinstance(index, faiss.IndexBinary):
        raise CodebookError(f"binary indexes are not supported; supported are {SUPPORTED_FAMILIES}")
    if not isinstance(index, faiss.Index):
        raise CodebookError(f"index must be a faiss.Index or the path of a file of one, got {type(index).__name__}")
    index = faiss.downcast_index(index)
    if isinstance(index, faiss.IndexIDMap):
        return _trained_index(index.index)
    if not index.is_trained:
        raise CodebookError("the index is not trained; call index.train(descriptors) first")
    ivf: Any = faiss.try_extract_index_ivf(index)
    if ivf is not None and isinstance(faiss.downcast_InvertedLists(ivf.invlists), faiss.OnDiskInvertedLists):
        raise CodebookError("the inverted lists of the index are on disk; pass the trained index without its vectors")
    return index


def _without_vectors(index: Any) -> Any:
    """A copy of an index without its vectors."""
    try:
        # Through bytes: faiss.clone_index knows fewer transforms.
        emptied: Any = faiss.deserialize_index(faiss.serialize_index(index))
        emptied.reset()
    except RuntimeError as error:
        raise CodebookError(f"FAISS cannot copy '{factory_string(index)}': {error}") from error
    if (ivf := faiss.try_extract_index_ivf(emptied)) is not None:
        ivf.set_direct_map_type(faiss.DirectMap.NoMap)  # type: ignore[attr-defined]
    return emptied


def _check_metrics(quantizer: Quantizer) -> None:
    """Refuse other metrics than L2, of the index and of the choice of cells."""
    parts = [quantizer.index, quantizer.inner, quantizer.codec]
    if quantizer.ivf is not None:
        parts.append(quantizer.ivf.quantizer)
    if any(part.metric_type != faiss.METRIC_L2 for part in parts):
        raise CodebookError(
            "the index does not compare by L2 distance; train one with faiss.METRIC_L2, which ranks descriptors of "
            "unit norm as inner products do"
        )


def _check_descriptors(descriptors: Tensor | np.ndarray, extractor: Extractor) -> np.ndarray:
    rows = descriptors.detach().cpu().numpy() if isinstance(descriptors, Tensor) else np.asarray(descriptors)
    if rows.ndim != 2 or rows.shape[1] != extractor.dim:
        raise CodebookError(f"descriptors must have shape (N, {extractor.dim}), got {rows.shape}")
    if len(rows) < _MIN_DESCRIPTORS:
        raise CodebookError(
            f"at least {_MIN_DESCRIPTORS} descriptors are needed, got {len(rows)}; 1,000 or more give a usable null "
            "distribution"
        )
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    if not (np.abs(np.linalg.norm(rows, axis=1) - 1) <= _MAX_NORM_ERROR).all():
        raise CodebookError("descriptors must have unit norm, as homing.describe gives them")
    return rows


def _bundled_null_distribution(quantizer: Quantizer, extractor: Extractor, spec: str) -> NullDistribution:
    """The null distribution from the bundled data of an extractor.

    For descriptors it is that of the bundled codebook. For codes it is measured on the decoded codes of the bundled
    distractors. These are nearer to each other than descriptors, so false-match probabilities are overestimated.
    """
    for bundled in map(load, available()):
        if bundled.extractor_fingerprint == extractor.fingerprint:
            codes = bundled_distractors(bundled).codes
            sample = np.random.default_rng(0).permutation(len(codes))[:_SAMPLE_SIZE]
            rows = torch.nn.functional.normalize(bundled.decode(codes[sample]), dim=1).numpy()
            refuse_one_code(quantizer, rows, spec)
            pairs = PairDistances.measure(*quantizer.comparison_points(rows, rows))
            return NullDistribution(pairs, bundled.null_distribution.descriptor)
    raise CodebookError(
        "false-match probabilities are measured on descriptors of unrelated photos, and the package has none of "
        f"extractor '{extractor.name}'; pass descriptors=homing.describe(photos, extractor) of 1,000 photos or more"
    )


def factory_string(index: Any) -> str:
    """The factory string of an index, also of families for which FAISS has none.

    A part that has none is given by the name of its class.
    """
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
