"""Which objective a codebook calls for."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from homing.codebooks import Codebook
from homing.errors import CodebookError
from homing.objectives.base import Objective
from homing.objectives.cell_margin import CellMargin
from homing.objectives.centroid import Centroid
from homing.objectives.codeword_margin import CodewordMargin
from homing.objectives.reconstruction import Reconstruction
from homing.objectives.sign_margin import SignMargin

_OBJECTIVES: dict[str, Callable[[Codebook, Tensor], Objective]] = {
    "codewords": Reconstruction,
    "cells": Centroid,
    "signs": SignMargin,
}


def has_objective(codebook: Codebook) -> bool:
    """Whether photos can be activated for this codebook."""
    return codebook.family in _OBJECTIVES


def objective_for(codebook: Codebook, originals: Tensor, *, margin: bool = False) -> Objective:
    """The objective of the codebook's family for these (B, D) original descriptors: the paper's, or with a margin.

    A margin is kept to other cells and to strangers in one's own where there are cells, and to other codewords in
    product quantizers without. Other codewords (RQ, LSQ, PRQ, SQ) and sign codes, whose objective is one of depth
    already, have the paper's either way.
    """
    if not has_objective(codebook):
        raise CodebookError(
            f"photos cannot be activated for spec '{codebook.spec}': it keeps descriptors as they are, so there is "
            "nothing to gain; release them as they are, or choose a codebook that compresses, such as IVF1024,PQ8x8"
        )
    if margin and codebook.has_cells:
        return CellMargin(codebook, originals)
    if margin and codebook.is_product:
        return CodewordMargin(codebook, originals)
    return _OBJECTIVES[codebook.family](codebook, originals)
