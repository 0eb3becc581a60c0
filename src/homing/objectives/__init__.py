"""What is minimised for a codebook's family, per photo."""

from homing.objectives.base import Objective, objective_for
from homing.objectives.reconstruction import Reconstruction

__all__ = ["Objective", "Reconstruction", "objective_for"]
