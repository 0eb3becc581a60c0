"""Recipes: the settings of the optimization loop, and the named recipes of the package."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from homing.errors import HomingError, UnknownNameError, check_type
from homing.objectives import ObjectiveKind
from homing.perception import JND, Budget, UniformJND

PAPER_BUDGET = JND(psnr=43.8)
OUR_BUDGET = UniformJND(psnr=PAPER_BUDGET.psnr)

Constraint = Literal["pixel", "image"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a photo is activated: objective, constraint, budget and the settings of the loop."""

    name: str
    summary: str = ""
    objective: ObjectiveKind = "paper"  # "margin" also keeps a distance to other cells or codewords
    constraint: Constraint = "pixel"  # "image": the PSNR holds for the image, pixels may exceed their bounds
    budget: Budget = PAPER_BUDGET
    steps: int = 10
    lr: float = 1.0  # Adam's, or with constraint "image" the RMS of a step as a share of the budget
    lr_decay: bool = False  # constraint "image" only: the lr falls linearly to 0
    grad_power: float = 0.5  # constraint "image" only: a pixel's step is its gradient to this power
    image_weight: float = 1.0  # constraint "pixel" only: the paper's lambda, on the mean squared pixel difference
    eot_samples: int = 1  # per step: the photo itself and eot_samples - 1 randomly edited copies

    def __post_init__(self) -> None:
        if self.objective not in get_args(ObjectiveKind):
            raise HomingError(f"objective must be 'margin' or 'paper', got '{self.objective}'")
        if self.constraint not in get_args(Constraint):
            raise HomingError(f"constraint must be 'pixel' or 'image', got '{self.constraint}'")
        for name in ("steps", "lr", "grad_power", "image_weight", "eot_samples"):
            check_type(name, getattr(self, name), "a number")
        for name in ("steps", "eot_samples"):
            if (count := getattr(self, name)) < 1 or count != int(count):
                raise HomingError(f"{name} must be a whole number of at least 1, got {count}")
        if not self.lr > 0:
            raise HomingError(f"lr must be above 0, got {self.lr:g}")
        if not self.image_weight >= 0:
            raise HomingError(f"image_weight must be at least 0, got {self.image_weight:g}")
        if not 0 <= self.grad_power <= 1:
            raise HomingError(f"grad_power must be between 0 (signs only) and 1, got {self.grad_power:g}")
        if self.constraint == "pixel" and (self.lr_decay or self.grad_power != 0.5):
            raise HomingError(f"lr_decay and grad_power need constraint='image'; recipe '{self.name}' has 'pixel'")
        if self.constraint == "image" and self.image_weight != 1.0:
            raise HomingError(f"image_weight needs constraint='pixel'; recipe '{self.name}' has 'image'")

    def __str__(self) -> str:
        samples = f" of {self.eot_samples} EOT samples" if self.eot_samples > 1 else ""
        return f"{self.name}: {self.steps} steps{samples}, lr {self.lr:g}, {self.budget}"


RECIPES = {
    each.name: each
    for each in (
        Recipe(
            name="homing-fast",
            summary="margin objective in two steps: a fifth of the work of paper, with higher recall",
            objective="margin",
            constraint="image",
            budget=OUR_BUDGET,
            steps=2,
            lr=0.5,
        ),
        Recipe(
            name="homing",
            summary="margin objective over the photo and edited copies of it: three times the work of paper",
            objective="margin",
            constraint="image",
            budget=OUR_BUDGET,
            steps=7,
            lr=0.2,
            eot_samples=4,
        ),
        Recipe(
            name="homing-max",
            summary="homing with many more edited copies and decaying steps: fifty times the work of paper",
            objective="margin",
            constraint="image",
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
            summary="paper with one large step: a tenth of the work of paper, slightly lower recall",
            steps=1,
            lr=10.0,
        ),
        Recipe(
            name="paper-eot",
            summary="paper with the loss averaged over edited copies: eight times the work of paper",
            eot_samples=8,
        ),
    )
}


def resolve_recipe(recipe: str | Recipe, *, psnr: float | None = None) -> Recipe:
    """A recipe by its name, or as it is; `psnr` replaces the strength of its budget."""
    if isinstance(recipe, str):
        if recipe not in RECIPES:
            raise UnknownNameError("recipe", recipe, RECIPES)
        recipe = RECIPES[recipe]
    if not isinstance(recipe, Recipe):
        raise HomingError(f"a recipe is given by name or as a homing.Recipe, got {type(recipe).__name__}")
    return recipe if psnr is None else replace(recipe, budget=replace(recipe.budget, psnr=psnr, alpha=None))
