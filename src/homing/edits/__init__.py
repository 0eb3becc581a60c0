"""Edits of photos by name: `parse("contrast-0.5")(image, seed=0)`."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

# Importing a module registers its edits.
from homing.edits import color, meme, overlay, pixel, screens, spatial  # noqa: F401
from homing.edits.disc import sample_edits
from homing.edits.paper import PAPER
from homing.edits.registry import KINDS, Edit, Kind, edit, parse

__all__ = ["KINDS", "PAPER", "Edit", "Kind", "differentiable", "edit", "parse", "sample_edits"]


def __getattr__(name: str) -> ModuleType:
    if name != "differentiable":
        raise AttributeError(f"module 'homing.edits' has no attribute '{name}'")
    return import_module("homing.edits.differentiable")  # imported on first use, since it needs PyTorch
