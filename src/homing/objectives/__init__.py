"""What is minimised for a codebook's family, per photo."""

from homing.objectives.base import Objective, has_objective, objective_for
from homing.objectives.centroid import Centroid
from homing.objectives.margin import Margin
from homing.objectives.reconstruction import Reconstruction
from homing.objectives.sign_margin import SignMargin

__all__ = ["Centroid", "Margin", "Objective", "Reconstruction", "SignMargin", "has_objective", "objective_for"]
