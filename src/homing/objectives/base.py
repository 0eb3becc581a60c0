"""What an objective is, and which one a codebook calls for."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from homing.codebooks import Codebook
from homing.errors import CodebookError
from homing.objectives.reconstruction import Reconstruction


class Objective(Protocol):
    """Made for the original descriptors of a batch; called with the moved ones, gives one loss per photo."""

    def __call__(self, descriptors: Tensor) -> Tensor:
        """The loss of each of (B, D) descriptors: (B,), differentiable."""
        ...


def objective_for(codebook: Codebook, originals: Tensor) -> Objective:
    """The objective of the codebook's family for these (B, D) original descriptors."""
    if not codebook.quantises_by_product:
        raise CodebookError(
            f"photos cannot be activated for spec '{codebook.spec}' yet; "
            "choose a codebook with product quantisation, such as IVF1024,PQ8x8"
        )
    return Reconstruction(codebook, originals)
