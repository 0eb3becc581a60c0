"""The public names of packages: what `dir` and tab completion list, and names that are imported when first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def list_public(package: str) -> Callable[[], list[str]]:
    """The `__dir__` of a package: the names in its `__all__`."""
    return lambda: sorted(sys.modules[package].__all__)


def import_lazily(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are imported when first used, from the module given for each.

    A name without a module ("") is a module itself.
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        if not modules[name]:
            return import_module(f"{package}.{name}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return get
