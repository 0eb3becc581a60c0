"""Moving a photo's pixels so that edited copies come home, and checking that it worked."""

from homing.activation.batch import activate
from homing.activation.recipe import RECIPES, Recipe, recipe_named, resolve_recipe
from homing.activation.release_check import Activation

__all__ = ["RECIPES", "Activation", "Recipe", "activate", "recipe_named", "resolve_recipe"]
