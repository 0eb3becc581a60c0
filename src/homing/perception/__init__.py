"""Pixel budgets based on visibility, and quality metrics of changed photos."""

from homing.perception.budgets import BUDGETS, JND, Budget, Linf, PrintedJND, UniformJND, budget_named, jnd_map
from homing.perception.quality import Quality, measure

__all__ = [
    "BUDGETS",
    "JND",
    "Budget",
    "Linf",
    "PrintedJND",
    "Quality",
    "UniformJND",
    "budget_named",
    "jnd_map",
    "measure",
]


def __dir__() -> list[str]:
    return sorted(__all__)
