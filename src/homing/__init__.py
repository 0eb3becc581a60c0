"""homing makes photos easy to recognize again: it changes their pixels imperceptibly before release.

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
        activation as activation,
        bench as bench,
        cluster as cluster,
        codebooks as codebooks,
        collection as collection,
        edits as edits,
        errors as errors,
        estimate as estimate,
        explain as explain,
        extractors as extractors,
        indexes as indexes,
        objectives as objectives,
        perception as perception,
        photo as photo,
        service as service,
        training as training,
        watermarks as watermarks,
    )
    from homing.activation import RECIPES, Activation, Recipe
    from homing.api import activate, activate_images, describe, load_codebook, load_extractor, measure
    from homing.codebooks import Codebook, CodebookLike, available as available_codebooks
    from homing.collection import (
        Collection,
        Export,
        Finding,
        Info,
        Match,
        Outcome,
        Reference,
        Release,
        SearchResult,
        SearchSettings,
        Selection,
        Verdict,
    )
    from homing.errors import (
        BusyError,
        CodebookError,
        CollectionError,
        FormatError,
        HomingError,
        NotFoundError,
        PhotoError,
        StorageUnavailableError,
        TooLargeError,
        UnknownNameError,
        UnsupportedError,
    )
    from homing.extractors import (
        Extractor,
        ExtractorLike,
        NetworkExtractor,
        available as available_extractors,
        register as register_extractor,
    )
    from homing.perception import JND, Budget, Linf, PrintedJND, Quality, UniformJND
    from homing.photo import Photo, PhotoLike, PhotosLike
    from homing.service.client import Client

__version__ = version("homing")

# Read once, when PyTorch loads OpenMP. By default its threads spin while they wait for each other; as soon as anything
# else runs on the machine, that makes the network twenty times slower (600 instead of 30 ms per photo on 2 cores).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Names are fetched when first used: `homing --help` must not wait for torch.
_PACKAGES = (
    "activation",
    "bench",
    "cluster",
    "codebooks",
    "collection",
    "edits",
    "errors",
    "estimate",
    "explain",
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
    "activation": "RECIPES Activation Recipe",
    "api": "activate activate_images describe load_codebook load_extractor measure",
    "codebooks": "Codebook CodebookLike",
    "collection": "Collection Export Finding Info Match Outcome Reference Release SearchResult SearchSettings Selection"
    " Verdict",
    "errors": "BusyError CodebookError CollectionError FormatError HomingError NotFoundError PhotoError"
    " StorageUnavailableError TooLargeError UnknownNameError UnsupportedError",
    "extractors": "Extractor ExtractorLike NetworkExtractor",
    "perception": "JND Budget UniformJND Linf PrintedJND Quality",
    "photo": "Photo PhotoLike PhotosLike",
    "service.client": "Client",
}
_SOURCES = {name: (module, name) for module, names in _NAMES.items() for name in names.split()} | {
    "available_codebooks": ("codebooks", "available"),
    "available_extractors": ("extractors", "available"),
    "register_extractor": ("extractors", "register"),
}

__all__ = [
    "JND",
    "RECIPES",
    "Activation",
    "Budget",
    "BusyError",
    "Client",
    "Codebook",
    "CodebookError",
    "CodebookLike",
    "Collection",
    "CollectionError",
    "Export",
    "Extractor",
    "ExtractorLike",
    "Finding",
    "FormatError",
    "HomingError",
    "Info",
    "Linf",
    "Match",
    "NetworkExtractor",
    "NotFoundError",
    "Outcome",
    "Photo",
    "PhotoError",
    "PhotoLike",
    "PhotosLike",
    "PrintedJND",
    "Quality",
    "Recipe",
    "Reference",
    "Release",
    "SearchResult",
    "SearchSettings",
    "Selection",
    "StorageUnavailableError",
    "TooLargeError",
    "UniformJND",
    "UnknownNameError",
    "UnsupportedError",
    "Verdict",
    "__version__",
    "activate",
    "activate_images",
    "available_codebooks",
    "available_extractors",
    "describe",
    "load_codebook",
    "load_extractor",
    "measure",
    "register_extractor",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"homing.{name}")
    if name not in _SOURCES:
        raise AttributeError(f"module 'homing' has no attribute '{name}'")
    module, attribute = _SOURCES[name]
    return getattr(import_module(f"homing.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted((*__all__, *_PACKAGES))
