"""Load extractors by name: bundled, published, from other packages, timm models, and files."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

import torch

import homing.extractors
from homing._imports import load_entry_points
from homing.errors import HomingError, UnknownNameError
from homing.extractors.base import Extractor

Device = torch.device | str | None
Builder = Callable[[Device], Extractor]
ExtractorLike = str | os.PathLike[str] | Extractor
"""An extractor by name, by file, or itself."""
_BUILDERS: dict[str, Builder] = {}


def register(name: str) -> Callable[[Builder], Builder]:
    """Register `build(device)` under this name; the first line of its docstring is shown to users."""

    def decorate(build: Builder) -> Builder:
        _BUILDERS[name] = build
        return build

    return decorate


def load(extractor: ExtractorLike, device: Device = None) -> Extractor:
    """The extractor of this name or file, on this device (by default a GPU if there is one).

    An Extractor is returned unchanged.
    """
    if not isinstance(extractor, str | os.PathLike):
        if not isinstance(extractor, Extractor):
            raise HomingError(
                "an extractor is given by name, file or as an Extractor, such as homing.NetworkExtractor(module, …), "
                f"got {type(extractor).__name__}"
            )
        return extractor
    name, patterns = os.fspath(extractor), _patterns()
    pattern = "timm:NAME" if name.startswith("timm:") else f"FILE.{name.rpartition('.')[2]}"
    if pattern in patterns:
        return patterns[pattern](name, device)
    discover()
    if name not in _BUILDERS:
        raise UnknownNameError("extractor", name, available())
    return _BUILDERS[name](device)


def available() -> dict[str, str]:
    """All names that `load` accepts, each with a one-line description."""
    discover()
    builders: dict[str, Callable[..., Extractor]] = {**dict(sorted(_BUILDERS.items())), **_patterns()}
    return {name: (build.__doc__ or "").strip().split("\n")[0] for name, build in builders.items()}


def discover() -> None:
    """Import the bundled extractors and those other packages offer under the entry point `homing.extractors`."""
    for module in iter_modules(homing.extractors.__path__, "homing.extractors."):
        import_module(module.name)
    load_entry_points("homing.extractors")


def _patterns() -> dict[str, Callable[[str, Device], Extractor]]:
    """The builders of what is not registered: any timm model, and files of networks."""
    from homing.extractors.descriptor_network import trained_network  # imports timm, as slow as PyTorch itself
    from homing.extractors.external import timm_model, torchscript

    return {"timm:NAME": timm_model, "FILE.pt": torchscript, "FILE.safetensors": trained_network}
