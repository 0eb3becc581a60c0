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
from importlib.metadata import version
from typing import TYPE_CHECKING

from homing._imports import import_lazily

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
    from homing.activation import RECIPES as RECIPES, Activation as Activation, Recipe as Recipe
    from homing.api import (
        activate as activate,
        activate_images as activate_images,
        available_codebooks as available_codebooks,
        available_extractors as available_extractors,
        describe as describe,
        load_codebook as load_codebook,
        load_extractor as load_extractor,
        measure as measure,
        register_extractor as register_extractor,
    )
    from homing.codebooks import Codebook as Codebook, CodebookLike as CodebookLike
    from homing.collection import (
        Collection as Collection,
        Export as Export,
        Finding as Finding,
        Info as Info,
        Match as Match,
        Outcome as Outcome,
        Reference as Reference,
        Release as Release,
        SearchResult as SearchResult,
        SearchSettings as SearchSettings,
        Selection as Selection,
        Verdict as Verdict,
    )
    from homing.errors import (
        BusyError as BusyError,
        CodebookError as CodebookError,
        CollectionError as CollectionError,
        FormatError as FormatError,
        HomingError as HomingError,
        NotFoundError as NotFoundError,
        PhotoError as PhotoError,
        StorageUnavailableError as StorageUnavailableError,
        TooLargeError as TooLargeError,
        UnknownNameError as UnknownNameError,
        UnsupportedError as UnsupportedError,
    )
    from homing.extractors import (
        Extractor as Extractor,
        ExtractorLike as ExtractorLike,
        NetworkExtractor as NetworkExtractor,
    )
    from homing.perception import (
        JND as JND,
        Budget as Budget,
        Linf as Linf,
        PrintedJND as PrintedJND,
        Quality as Quality,
        UniformJND as UniformJND,
    )
    from homing.photo import Photo as Photo, PhotoLike as PhotoLike, PhotosLike as PhotosLike
    from homing.service.client import Client as Client

__version__ = version("homing")

# Read once, when PyTorch loads OpenMP. By default its threads spin while they wait for each other; as soon as anything
# else runs on the machine, that makes the network twenty times slower (600 instead of 30 ms per photo on 2 cores).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Names are fetched when first used: `homing --help` must not wait for torch.
_NAMES = {
    "": "activation bench cluster codebooks collection edits errors estimate explain extractors indexes objectives"
    " perception photo service training watermarks",
    "activation": "RECIPES Activation Recipe",
    "api": "activate activate_images available_codebooks available_extractors describe load_codebook load_extractor"
    " measure register_extractor",
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
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(("__version__", *(name for name, module in _MODULES.items() if module)))
__getattr__ = import_lazily(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(("__version__", *_MODULES))
