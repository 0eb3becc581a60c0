"""Differentiable edits of batches: `DIFFERENTIABLE_EDITS["blur"](views, strength, generator)`."""

# Importing a module registers its differentiable edits.
from homing.edits.differentiable import color, jpeg, palette, pixel, spatial, templates  # noqa: F401
from homing.edits.differentiable.mixture import Ranges, random_edits
from homing.edits.differentiable.views import DIFFERENTIABLE_EDITS, DifferentiableEdit, Views, differentiable_edit

__all__ = ["DIFFERENTIABLE_EDITS", "DifferentiableEdit", "Ranges", "Views", "differentiable_edit", "random_edits"]
