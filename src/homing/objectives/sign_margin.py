"""The paper's objective for sign codes: the signed distance to each hyperplane."""

from __future__ import annotations

import faiss
import torch
from torch import Tensor

from homing.codebooks import Codebook
from homing.codebooks.transforms import compose, to_torch
from homing.objectives.base import Objective


class SignMargin(Objective):
    """−1/L Σ sign(b_j(x_o)) · (w_jᵀx − t_j): for LSH behind any projection (PCA, ITQ, …), and for RaBitQ.

    The hyperplanes of LSH are at its thresholds, those of RaBitQ at the mean of its training set. A softplus instead
    of the mean, which ignores bits with a large margin, does not raise recall with PCA64,LSH.
    """

    per_photo = ("_signs",)

    def __init__(self, codebook: Codebook, originals: Tensor) -> None:
        codec = codebook.quantizer.codec
        self._transform = codebook.torch_transform(originals.device)
        self._bits: int | None = None
        self._planes = originals.new_zeros(())
        if hasattr(codec, "thresholds"):
            if codec.rotate_data:
                self._transform = compose([self._transform, to_torch(codec.rrot, originals.device)])
            self._bits = codec.nbits
            if codec.train_thresholds:
                self._planes = torch.from_numpy(faiss.vector_to_array(codec.thresholds)).to(originals)
        else:
            self._planes = torch.from_numpy(faiss.vector_to_array(codec.center)).to(originals)
        self._signs = torch.where(self._sides(originals) > 0, 1.0, -1.0)

    def __call__(self, descriptors: Tensor) -> Tensor:
        """Mean signed distance of each descriptor to the hyperplanes: (B,), negative on the side of the original."""
        return -(self._signs * self._sides(descriptors)).mean(dim=1)

    def _sides(self, descriptors: Tensor) -> Tensor:
        """The projections whose signs FAISS stores: (B, L)."""
        return self._transform(descriptors)[:, : self._bits] - self._planes
