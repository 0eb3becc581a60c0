"""Objectives: the loss that activation minimizes, one class per family of codebooks.

Those of Active Image Indexing minimize the distance to one point, or to a side of hyperplanes: `Reconstruction`,
`Centroid` and `SignMargin`. `CellMargin` and `CodewordMargin` maximize the margin to where copies are otherwise
assigned to. `objective_for` chooses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import ClassVar, Literal, TypeVar

import faiss
import torch
import torch.nn.functional as F
from torch import Tensor

from homing.codebooks import Codebook
from homing.codebooks.quantizer import compose, to_torch
from homing.errors import CodebookError

__all__ = [
    "CellMargin",
    "Centroid",
    "CodewordMargin",
    "Objective",
    "ObjectiveKind",
    "Reconstruction",
    "SignMargin",
    "has_objective",
    "objective_for",
]


def __dir__() -> list[str]:
    return sorted(__all__)


ObjectiveKind = Literal["margin", "paper"]
ObjectiveType = TypeVar("ObjectiveType", bound="Objective")

_CODE_WEIGHT = 0.5  # of the photo's own code, in the margin objectives
# In squared distance; at 0.2 photos move away from their own code, and unedited copies are lost.
_CELL_TEMPERATURE = 0.05
_SAMPLED_CODES = 64  # about the number of photos per cell in a collection of a few hundred thousand
_SAMPLED_CODES_WEIGHT = 0.2  # at 1, more copies are lost to other cells than are gained within their cell
# In squared distance, divided by the number of sub-spaces; at 0.4 it equals the paper's objective.
_CODEWORD_TEMPERATURE = 0.05


class Objective(ABC):
    """Loss per photo: built from the original descriptors of a batch, called with the changed descriptors."""

    per_photo: ClassVar[tuple[str, ...]]
    """Names of the attributes that have one row per photo."""

    @abstractmethod
    def __call__(self, descriptors: Tensor) -> Tensor:
        """The loss of each of (B, D) descriptors: (B,), differentiable."""

    def copy_loss(self, descriptors: Tensor) -> Tensor:
        """The loss of edited copies (B, D) of the photos; by default that of the photos."""
        return self(descriptors)

    def select(self: ObjectiveType, indices: Tensor) -> ObjectiveType:
        """The objective of the photos with these indices (N,) of the batch, which may repeat."""
        selected = copy(self)
        for name in self.per_photo:
            setattr(selected, name, getattr(self, name)[indices])
        return selected


class _Target(Objective):
    """‖x − t‖² for a target t of each photo."""

    per_photo = ("_targets",)
    _targets: Tensor

    def __call__(self, descriptors: Tensor) -> Tensor:
        """Squared distance of each descriptor to its target: (B,)."""
        return (descriptors - self._targets).square().sum(dim=1)


class Reconstruction(_Target):
    """‖x − q(x_o)‖²: for PQ, SQ, RQ and LSQ, with or without cells, after any rotation.

    Codes for fast scans are by default not of residuals, so q does not depend on the cell. The target is then the
    midpoint of q and the centroid, which minimizes the sum of both squared distances.
    """

    def __init__(self, codebook: Codebook, originals: Tensor) -> None:
        self._targets = codebook.reconstruct(originals)
        if codebook.has_cells and not codebook.quantizer.ivf.by_residual:
            self._targets = (self._targets + codebook.centroids(originals)) / 2


class Centroid(_Target):
    """‖x − c(x_o)‖²: for IVF,Flat, IVF,SQ and IVF,RaBitQ, where copies are lost to other cells.

    For IVF,RaBitQ the sign margin leads away from the centroid: with IVF256,RaBitQ it lowers recall.
    """

    def __init__(self, codebook: Codebook, originals: Tensor) -> None:
        self._targets = codebook.centroids(originals)


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


class CellMargin(Objective):
    """T · cross-entropy of −‖x − c_j‖²/T over all cells j, plus 0.2 times that of −‖x − q_k‖²/T over codes q_k.

    The codes q_k are the photo's own code q(x_o) and random codes of its cell, which stand for distractors. The loss of
    the photo itself (not of its copies) adds ½ ‖x − q(x_o)‖². The paper's objectives minimize the distance to one
    point; this one maximizes the margin to neighboring cells and to other codes of the cell, which copies are otherwise
    assigned to. In cells that store full descriptors, q(x_o) is x_o. There, and where codes are not of residuals, no
    codes are sampled.
    """

    per_photo = ("_cells", "_codes", "_cell_codes")

    def __init__(self, codebook: Codebook, originals: Tensor) -> None:
        self._centers = codebook.all_centroids.to(originals)
        self._lengths = self._centers.square().sum(dim=1)
        self._cells = codebook.cells(originals).to(originals.device)
        self._codes = originals if codebook.family == "cells" else codebook.reconstruct(originals)
        self._cell_codes = torch.cat(
            [self._codes[:, None], codebook.sample_reconstructions(self._cells, _SAMPLED_CODES).to(originals)], dim=1
        )

    def __call__(self, descriptors: Tensor) -> Tensor:
        """The loss of each of (B, D) descriptors: (B,)."""
        return self.copy_loss(descriptors) + _CODE_WEIGHT * (descriptors - self._codes).square().sum(dim=1)

    def copy_loss(self, descriptors: Tensor) -> Tensor:
        """The loss without the term of the own code: copies may be anywhere in the cell."""
        # ‖x‖² is common to all scores and cancels in the softmax.
        cell_codes = self._cell_codes.to(descriptors)
        cell_scores = 2 * descriptors @ self._centers.T.to(descriptors) - self._lengths
        code_scores = 2 * torch.einsum("bd,bkd->bk", descriptors, cell_codes) - cell_codes.square().sum(dim=2)
        first = torch.zeros_like(self._cells)
        return _margin(cell_scores, self._cells) + _SAMPLED_CODES_WEIGHT * _margin(code_scores, first)


def _margin(scores: Tensor, own: Tensor) -> Tensor:
    """T times the cross-entropy of (B, N) scores with targets (B,): (B,); 0 for N = 1."""
    return _CELL_TEMPERATURE * F.cross_entropy(scores / _CELL_TEMPERATURE, own, reduction="none")


class CodewordMargin(Objective):
    """Σ T · cross-entropy of −‖x_m − c_mj‖²/T over the codewords j of each of M sub-spaces m, plus ½ ‖x − q(x_o)‖².

    Every combination of codewords is a code, and squared distances add over sub-spaces. The sum is therefore T times
    the cross-entropy over all possible codes. T is 0.05/M.
    """

    per_photo = ("_own", "_codes")

    def __init__(self, codebook: Codebook, originals: Tensor) -> None:
        self._transform = codebook.torch_transform(originals.device)
        self._codewords = codebook.codewords.to(originals)
        self._own = codebook.pq_codes(originals).to(originals.device)
        self._codes = codebook.reconstruct(originals)
        self._temperature = _CODEWORD_TEMPERATURE / len(self._codewords)

    def __call__(self, descriptors: Tensor) -> Tensor:
        """The loss of each of (B, D) descriptors: (B,)."""
        codewords = self._codewords.to(descriptors)
        parts = self._transform(descriptors).reshape(len(descriptors), len(codewords), -1)
        # ‖x_m‖² is common to all scores and cancels in the softmax.
        scores = 2 * torch.einsum("bmd,mjd->bjm", parts, codewords) - codewords.square().sum(dim=2).T
        losses = F.cross_entropy(scores / self._temperature, self._own, reduction="none")
        return self._temperature * losses.sum(dim=1) + _CODE_WEIGHT * (descriptors - self._codes).square().sum(dim=1)


_PAPER_OBJECTIVES: dict[str, Callable[[Codebook, Tensor], Objective]] = {
    "codewords": Reconstruction,
    "cells": Centroid,
    "signs": SignMargin,
}


def has_objective(codebook: Codebook) -> bool:
    """Whether photos can be activated for this codebook."""
    return codebook.family in _PAPER_OBJECTIVES


def objective_for(codebook: Codebook, originals: Tensor, kind: ObjectiveKind = "paper") -> Objective:
    """The objective of the codebook's family for (B, D) original descriptors.

    `kind` "paper" gives the objective of Active Image Indexing. "margin" gives `CellMargin` for codebooks with cells
    and `CodewordMargin` for product quantizers without cells. The other families (RQ, LSQ, PRQ and SQ without cells,
    and sign codes, whose paper objective already is a margin) have one objective, which both kinds give.
    """
    if not has_objective(codebook):
        raise CodebookError(
            f"photos cannot be activated for spec '{codebook.spec}': it stores exact descriptors, so there is "
            "nothing to gain; release them passively, or choose a codebook that compresses, such as IVF1024,PQ8x8"
        )
    if kind == "margin" and codebook.has_cells:
        return CellMargin(codebook, originals)
    if kind == "margin" and codebook.is_product:
        return CodewordMargin(codebook, originals)
    return _PAPER_OBJECTIVES[codebook.family](codebook, originals)
