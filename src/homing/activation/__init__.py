"""Activation: optimize the pixels of photos towards an index, write the files, and check them."""

from homing.activation.pipeline import activate_batch
from homing.activation.recipe import RECIPES, Recipe, resolve_recipe
from homing.activation.release_check import Activation

__all__ = ["RECIPES", "Activation", "Recipe", "activate_batch", "resolve_recipe"]


def __dir__() -> list[str]:
    return sorted(__all__)
