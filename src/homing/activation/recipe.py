"""How hard, how long and towards what a photo is moved."""

from __future__ import annotations

from dataclasses import dataclass

from homing.errors import HomingError, UnknownNameError
from homing.perception import JND, Budget, EvenJND

PAPER_BUDGET = JND(psnr=43.8)
OUR_BUDGET = EvenJND(psnr=PAPER_BUDGET.psnr)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How hard, how long and towards what a photo is moved; a value with a name."""

    name: str
    summary: str
    steps: int = 10
    rate: float = 1.0  # Adam's; of a loose recipe, how loud a step is, as a share of the budget
    fading: bool = False  # of a loose recipe: steps grow fainter, from the rate down to nothing
    power: float = 0.5  # of a loose recipe: of the gradient, by which pixels move
    margin: bool = False  # keep clear of what copies are taken for, instead of going to one point as in the paper
    fidelity: float = 1.0  # the paper's lambda, on the mean squared pixel difference; loose recipes have none
    budget: Budget = PAPER_BUDGET
    loose: bool = False  # a PSNR is kept by the change as a whole, not by each pixel within its room; see walks.py
    views: int = 1  # of each photo at each step: itself, and randomly edited copies of it

    def __post_init__(self) -> None:
        if self.steps < 1 or self.steps != int(self.steps):
            raise HomingError(f"a recipe needs a whole number of steps, at least 1, got {self.steps}")
        if self.views < 1 or self.views != int(self.views):
            raise HomingError(f"a recipe needs a whole number of views, at least 1, got {self.views}")
        if not self.rate > 0 or not self.fidelity >= 0:
            raise HomingError(f"rate must be above 0 and fidelity not below, got {self.rate:g} and {self.fidelity:g}")
        if not self.loose and (self.fading or self.power != 0.5):
            raise HomingError(f"only loose recipes have fading and power, '{self.name}' is not")
        if not 0 <= self.power <= 1:
            raise HomingError(f"power must lie between 0, where signs alone count, and 1, got {self.power:g}")

    def __str__(self) -> str:
        views = f" of {self.views} views" if self.views > 1 else ""
        return f"{self.name}: {self.steps} steps{views}, rate {self.rate:g}, {self.budget}"


RECIPES = {
    each.name: each
    for each in (
        Recipe(
            name="homing-fast",
            summary="two steps away from other cells: a fifth of the paper's work, and more recall",
            margin=True,
            loose=True,
            budget=OUR_BUDGET,
            steps=2,
            rate=0.5,
        ),
        Recipe(
            name="homing",
            summary="keeps clear of other cells, as the photo and as edited copies of it: three times the paper's work",
            margin=True,
            loose=True,
            budget=OUR_BUDGET,
            steps=7,
            rate=0.2,
            views=4,
        ),
        Recipe(
            name="homing-max",
            summary="the same by many more copies and ever smaller steps: fifty times the paper's work",
            margin=True,
            loose=True,
            budget=OUR_BUDGET,
            steps=30,
            rate=0.15,
            fading=True,
            power=1.0,
            views=16,
        ),
        Recipe(name="paper", summary="Active Image Indexing as published"),
        Recipe(
            name="paper-fast",
            summary="one large step: a tenth of the loop's time, a little less recall",
            steps=1,
            rate=10.0,
        ),
        Recipe(
            name="paper-eot", summary="also towards what edits make of the photo: eight times the loop's work", views=8
        ),
    )
}


def recipe_named(name: str) -> Recipe:
    """The recipe of this name."""
    if name not in RECIPES:
        raise UnknownNameError("recipe", name, RECIPES)
    return RECIPES[name]
