"""Codebooks from FAISS indexes trained elsewhere: the index is checked, emptied, and its null distribution measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch
from torch import Tensor

from homing.codebooks.bundled import available, bundled_distractors, load
from homing.codebooks.codebook import Codebook
from homing.codebooks.factory_string import factory_string
from homing.codebooks.faiss_training import refuse_one_code
from homing.codebooks.null_distribution import NullDistribution, PairDistances
from homing.codebooks.quantizer import SUPPORTED_FAMILIES, Quantizer
from homing.errors import CodebookError
from homing.extractors import Extractor

_SAMPLE_SIZE = 2_000  # distractors of which the null distribution of codes is measured
_MAX_NORM_ERROR = 0.01
_MIN_DESCRIPTORS = 2


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
    rows = None if descriptors is None else _check_descriptors(descriptors, extractor)
    return Codebook(
        faiss.serialize_index(emptied).tobytes(),
        _bundled_null_distribution(quantizer, extractor, spec) if rows is None else _measure(quantizer, rows, spec),
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


def _measure(quantizer: Quantizer, rows: np.ndarray, spec: str) -> NullDistribution:
    refuse_one_code(quantizer, rows, spec)
    return NullDistribution.measure(quantizer, rows)


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
