"""The objective of a codebook's family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from torch import Tensor

from homing.codebooks import Codebook
from homing.errors import CodebookError
from homing.objectives.base import Objective
from homing.objectives.cell_margin import CellMargin
from homing.objectives.centroid import Centroid
from homing.objectives.codeword_margin import CodewordMargin
from homing.objectives.reconstruction import Reconstruction
from homing.objectives.sign_margin import SignMargin

ObjectiveKind = Literal["margin", "paper"]

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
