"""homing makes photos easy to recognize again: the public API, nothing else."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from homing.activation import RECIPES, Activation, Recipe, activate
    from homing.codebooks import Codebook
    from homing.collection import Collection, Finding, Info, Match, Outcome
    from homing.errors import HomingError
    from homing.extractors import Extractor, NetworkExtractor
    from homing.perception import JND, Budget, Linf, PrintedJND, Quality, UniformJND, measure
    from homing.photo import Photo
    from homing.service.client import Client

__version__ = version("homing")

# Read once, when PyTorch loads OpenMP. By default its threads spin while they wait for each other; as soon as anything
# else runs on the machine, that makes the network twenty times slower (600 instead of 30 ms per photo on 2 cores).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Names are fetched when first used: `homing --help` must not wait for torch.
_PACKAGES = {
    "activation": ("RECIPES", "Activation", "Recipe", "activate"),
    "codebooks": ("Codebook",),
    "collection": ("Collection", "Finding", "Info", "Match", "Outcome"),
    "errors": ("HomingError",),
    "extractors": ("Extractor", "NetworkExtractor"),
    "perception": ("JND", "Budget", "UniformJND", "Linf", "PrintedJND", "Quality", "measure"),
    "photo": ("Photo",),
    "service.client": ("Client",),
}
_PACKAGE_OF = {name: package for package, names in _PACKAGES.items() for name in names}

__all__ = [
    "JND",
    "RECIPES",
    "Activation",
    "Budget",
    "Client",
    "Codebook",
    "Collection",
    "Extractor",
    "Finding",
    "HomingError",
    "Info",
    "Linf",
    "Match",
    "NetworkExtractor",
    "Outcome",
    "Photo",
    "PrintedJND",
    "Quality",
    "Recipe",
    "UniformJND",
    "__version__",
    "activate",
    "measure",
]


def __getattr__(name: str) -> Any:
    if name not in _PACKAGE_OF:
        raise AttributeError(f"module 'homing' has no attribute '{name}'")
    return getattr(import_module(f"homing.{_PACKAGE_OF[name]}"), name)
