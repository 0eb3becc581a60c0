"""homing makes photos easy to find again: it moves their pixels imperceptibly before they are released.

    import homing

    with homing.Collection.create("holiday.homing", with_distractors=True) as collection:
        collection.activate("photos/", "released/")   # index, activate, check, write
        result = collection.search("copy.jpg")        # or an array, a tensor, a PIL image, bytes
        print(result.verdict, result.best)

Without a collection: `homing.activate(photo)`, `homing.describe(photos)`, `homing.activate_images(tensors)`.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from homing import (
        activation,
        codebooks,
        collection,
        edits,
        extractors,
        indexes,
        objectives,
        perception,
        photo,
        service,
        training,
        watermarks,
    )
    from homing.activation import RECIPES, Activation, Recipe
    from homing.api import activate, activate_images, describe, load_codebook, load_extractor
    from homing.codebooks import Codebook
    from homing.codebooks import available as available_codebooks
    from homing.collection import Collection, Finding, Info, Match, Outcome, Reference, SearchPlan, SearchResult
    from homing.errors import HomingError, PhotoError
    from homing.extractors import Extractor, NetworkExtractor
    from homing.extractors import available as available_extractors
    from homing.extractors import register as register_extractor
    from homing.perception import JND, Budget, Linf, PrintedJND, Quality, UniformJND, measure
    from homing.photo import Photo, PhotoLike
    from homing.service.client import Client

__version__ = version("homing")

# Read once, when PyTorch loads OpenMP. By default its threads spin while they wait for each other; as soon as anything
# else runs on the machine, that makes the network twenty times slower (600 instead of 30 ms per photo on 2 cores).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Names are fetched when first used: `homing --help` must not wait for torch.
_PACKAGES = (
    "activation",
    "codebooks",
    "collection",
    "edits",
    "extractors",
    "indexes",
    "objectives",
    "perception",
    "photo",
    "service",
    "training",
    "watermarks",
)
_NAMES = {
    "activation": ("RECIPES", "Activation", "Recipe"),
    "api": ("activate", "activate_images", "describe", "load_codebook", "load_extractor"),
    "codebooks": ("Codebook",),
    "collection": (*("Collection", "Finding", "Info", "Match", "Outcome", "Reference", "SearchPlan", "SearchResult"),),
    "errors": ("HomingError", "PhotoError"),
    "extractors": ("Extractor", "NetworkExtractor"),
    "perception": ("JND", "Budget", "UniformJND", "Linf", "PrintedJND", "Quality", "measure"),
    "photo": ("Photo", "PhotoLike"),
    "service.client": ("Client",),
}
_SOURCES = {name: (module, name) for module, names in _NAMES.items() for name in names} | {
    "available_codebooks": ("codebooks", "available"),
    "available_extractors": ("extractors", "available"),
    "register_extractor": ("extractors", "register"),
}

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
    "PhotoError",
    "PhotoLike",
    "PrintedJND",
    "Quality",
    "Recipe",
    "Reference",
    "SearchPlan",
    "SearchResult",
    "UniformJND",
    "__version__",
    "activate",
    "activate_images",
    "activation",
    "available_codebooks",
    "available_extractors",
    "codebooks",
    "collection",
    "describe",
    "edits",
    "extractors",
    "indexes",
    "load_codebook",
    "load_extractor",
    "measure",
    "objectives",
    "perception",
    "photo",
    "register_extractor",
    "service",
    "training",
    "watermarks",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"homing.{name}")
    if name not in _SOURCES:
        raise AttributeError(f"module 'homing' has no attribute '{name}'")
    module, attribute = _SOURCES[name]
    return getattr(import_module(f"homing.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
