"""A product quantizer as plain arrays, and a NumPy script that computes its codes."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np

from homing.codebooks.codebook import Codebook
from homing.errors import CodebookError

_LINES = {
    "load": 'a = np.load("quantizer.npz")',
    "transform": 'x = x @ a["matrix"].T + a["shift"]  # rotated, or projected',
    "cell": 'cells = ((a["centroids"] ** 2).sum(1) - 2 * x @ a["centroids"].T).argmin(1)  # the nearest centroids',
    "residual": 'x = x - a["centroids"][cells]  # codewords approximate residuals',
    "split": 'parts = x.reshape(len(x), len(a["codewords"]), -1).swapaxes(0, 1)  # one for each sub-space',
    "nearest": 'indices = [((c**2).sum(1) - 2 * p @ c.T).argmin(1) for p, c in zip(parts, a["codewords"])]',
    "bits": "bits = (np.stack(indices, 1)[..., None] >> np.arange({bits})) & 1",
    "pack": 'codes = np.packbits(bits.reshape(len(x), -1).astype(np.uint8), axis=1, bitorder="little")',
    "number": 'number = cells.astype("<u8")[:, None].view(np.uint8)[:, :{size}]  # of the cell, little-endian',
    "join": "codes = np.concatenate([number, codes], axis=1)",
}


def as_arrays(codebook: Codebook) -> tuple[dict[str, np.ndarray], str]:
    """The arrays of a product-quantizer codebook, and the NumPy script that encodes (N, D) descriptors `x`."""
    codec = codebook.quantizer.codec
    if type(codec) not in (faiss.IndexPQ, faiss.IndexIVFPQ):
        raise CodebookError(
            f"'{codebook.spec}' is not a product quantizer, the only kind that is exported as arrays; "
            "export it as a FAISS index: --format faiss"
        )
    arrays = {"codewords": codebook.quantizer.codewords()}
    lines = ["load"]
    if codebook.quantizer.transforms:
        arrays |= _linear_transform(codebook)
        lines.append("transform")
    if codebook.has_cells:
        arrays["centroids"] = _centroids(codebook.quantizer.ivf)
        lines += ["cell", "residual"] if codec.by_residual else ["cell"]
    lines += ["split", "nearest", "bits", "pack"]
    if codebook.has_cells:
        lines += ["number", "join"]
    size = codebook.code_size - codec.code_size
    script = "\n".join(_LINES[line].format(bits=codec.pq.nbits, size=size) for line in lines)
    return arrays, script


def _linear_transform(codebook: Codebook) -> dict[str, np.ndarray]:
    """All transforms as one matrix and shift, probed with the zero vector and the unit vectors."""
    quantizer = codebook.quantizer
    if not all(isinstance(each, faiss.LinearTransform) for each in quantizer.transforms):
        raise CodebookError(
            f"'{codebook.spec}' has a transform that is not linear; export it as a FAISS index: --format faiss"
        )
    shift = quantizer.transform(np.zeros((1, codebook.dim), np.float32))
    axes = quantizer.transform(np.eye(codebook.dim, dtype=np.float32))
    return {"matrix": np.ascontiguousarray((axes - shift).T), "shift": shift[0]}


def _centroids(ivf: Any) -> np.ndarray:
    centroids: np.ndarray = ivf.quantizer.reconstruct_n(0, ivf.nlist)
    return centroids
