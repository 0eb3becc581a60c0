"""A product quantizer as plain arrays, and a NumPy script that computes its codes."""

from __future__ import annotations

import faiss
import numpy as np

from homing.codebooks.codebook import Codebook
from homing.codebooks.quantizer import affine
from homing.errors import CodebookError


def as_arrays(codebook: Codebook) -> tuple[dict[str, np.ndarray], str]:
    """The arrays of a product-quantizer codebook, and the NumPy script that encodes (N, D) descriptors `x`."""
    quantizer, codec = codebook.quantizer, codebook.quantizer.codec
    if type(codec) not in (faiss.IndexPQ, faiss.IndexIVFPQ):
        raise CodebookError(
            f"'{codebook.spec}' is not a product quantizer, the only kind that is exported as arrays; "
            "export it as a FAISS index: --format faiss"
        )
    arrays, lines = {"codewords": codebook.codewords.numpy()}, ['a = np.load("quantizer.npz")']
    if quantizer.transforms:
        if not all(isinstance(each, faiss.LinearTransform) for each in quantizer.transforms):
            raise CodebookError(
                f"'{codebook.spec}' has a transform that is not linear; export it as a FAISS index: --format faiss"
            )
        matrix, shift = affine(quantizer.transform, codebook.dim)
        arrays |= {"matrix": np.ascontiguousarray(matrix.T), "shift": shift}
        lines.append('x = x @ a["matrix"].T + a["shift"]  # rotated, or projected')
    if codebook.has_cells:
        arrays["centroids"] = quantizer.ivf.quantizer.reconstruct_n(0, quantizer.ivf.nlist)
        nearest = 'cells = ((a["centroids"] ** 2).sum(1) - 2 * x @ a["centroids"].T).argmin(1)'
        lines.append(f"{nearest}  # the nearest centroids")
        if codec.by_residual:
            lines.append('x = x - a["centroids"][cells]  # codewords approximate residuals')
    lines += [
        'parts = x.reshape(len(x), len(a["codewords"]), -1).swapaxes(0, 1)  # one for each sub-space',
        'indices = [((c**2).sum(1) - 2 * p @ c.T).argmin(1) for p, c in zip(parts, a["codewords"])]',
        f"bits = (np.stack(indices, 1)[..., None] >> np.arange({codec.pq.nbits})) & 1",
        'codes = np.packbits(bits.reshape(len(x), -1).astype(np.uint8), axis=1, bitorder="little")',
    ]
    if codebook.has_cells:
        number = f'cells.astype("<u8")[:, None].view(np.uint8)[:, :{codebook.code_size - codec.code_size}]'
        lines.append(f"number = {number}  # of the cell, little-endian")
        lines.append("codes = np.concatenate([number, codes], axis=1)")
    return arrays, "\n".join(lines)
