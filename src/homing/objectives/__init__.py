"""Objectives: the loss that activation minimizes for the family of a codebook."""

from homing.objectives.base import Objective
from homing.objectives.cell_margin import CellMargin
from homing.objectives.centroid import Centroid
from homing.objectives.codeword_margin import CodewordMargin
from homing.objectives.factory import ObjectiveKind, has_objective, objective_for
from homing.objectives.reconstruction import Reconstruction
from homing.objectives.sign_margin import SignMargin

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
