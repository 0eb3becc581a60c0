"""How hard, how long and towards what a photo is moved."""

from __future__ import annotations

from dataclasses import dataclass

from homing.errors import HomingError, UnknownNameError
from homing.perception import JND, Budget, UniformJND

PAPER_BUDGET = JND(psnr=43.8)
OUR_BUDGET = UniformJND(psnr=PAPER_BUDGET.psnr)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How hard, how long and towards what a photo is moved; a value with a name."""

    name: str
    summary: str
    steps: int = 10
    lr: float = 1.0  # Adam's; of a loose recipe, how loud a step is, as a share of the budget
    lr_decay: bool = False  # of a loose recipe: steps grow fainter, from the lr down to nothing
    grad_power: float = 0.5  # of a loose recipe: of the gradient, by which pixels move
    margin: bool = False  # keep clear of what copies are taken for, instead of going to one point as in the paper
    image_weight: float = 1.0  # the paper's lambda, on the mean squared pixel difference; loose recipes have none
    budget: Budget = PAPER_BUDGET
    loose: bool = (
        False  # a PSNR is kept by the change as a whole, not by each pixel within its bound; see optimizers.py
    )
    eot_samples: int = 1  # of each photo at each step: itself, and randomly edited copies of it

    def __post_init__(self) -> None:
        if self.steps < 1 or self.steps != int(self.steps):
            raise HomingError(f"a recipe needs a whole number of steps, at least 1, got {self.steps}")
        if self.eot_samples < 1 or self.eot_samples != int(self.eot_samples):
            raise HomingError(f"a recipe needs a whole number of EOT samples, at least 1, got {self.eot_samples}")
        if not self.lr > 0 or not self.image_weight >= 0:
            raise HomingError(
                f"lr must be above 0 and image_weight not below, got {self.lr:g} and {self.image_weight:g}"
            )
        if not self.loose and (self.lr_decay or self.grad_power != 0.5):
            raise HomingError(f"only loose recipes have lr_decay and grad_power, '{self.name}' is not")
        if not 0 <= self.grad_power <= 1:
            raise HomingError(f"grad_power must lie between 0, where signs alone count, and 1, got {self.grad_power:g}")

    def __str__(self) -> str:
        views = f" of {self.eot_samples} views" if self.eot_samples > 1 else ""
        return f"{self.name}: {self.steps} steps{views}, lr {self.lr:g}, {self.budget}"


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
            lr=0.5,
        ),
        Recipe(
            name="homing",
            summary="keeps clear of other cells, as the photo and as edited copies of it: three times the paper's work",
            margin=True,
            loose=True,
            budget=OUR_BUDGET,
            steps=7,
            lr=0.2,
            eot_samples=4,
        ),
        Recipe(
            name="homing-max",
            summary="the same by many more copies and ever smaller steps: fifty times the paper's work",
            margin=True,
            loose=True,
            budget=OUR_BUDGET,
            steps=30,
            lr=0.15,
            lr_decay=True,
            grad_power=1.0,
            eot_samples=16,
        ),
        Recipe(name="paper", summary="Active Image Indexing as published"),
        Recipe(
            name="paper-fast",
            summary="one large step: a tenth of the loop's time, a little less recall",
            steps=1,
            lr=10.0,
        ),
        Recipe(
            name="paper-eot",
            summary="also towards what edits make of the photo: eight times the loop's work",
            eot_samples=8,
        ),
    )
}


def recipe_named(name: str) -> Recipe:
    """The recipe of this name."""
    if name not in RECIPES:
        raise UnknownNameError("recipe", name, RECIPES)
    return RECIPES[name]
