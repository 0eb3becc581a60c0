"""What is imported only when it is used: names of packages, libraries of the extras, entry points of other packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from homing.errors import HomingError


def load_extra(module: str, extra: str) -> ModuleType:
    """Import a module of an optional library; if it is missing, the error names the extra that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise HomingError(f"{error.name} is missing; get it: {install_command(extra)}") from error
    except ImportError as error:
        raise HomingError(f"{module} cannot be loaded: {error}; install it again") from error


@cache
def load_entry_points(group: str) -> None:
    """Import what other packages offer under the entry point `group`, once; the modules register what they hold."""
    for entry in entry_points(group=group):
        load_entry_point(entry)


def load_entry_point(entry: EntryPoint) -> Any:
    """Import the object of an entry point; if that fails, the error names the entry point and its module."""
    try:
        return entry.load()
    except (Exception, SystemExit) as error:  # a module of somebody else may raise anything
        raise HomingError(
            f"{entry.value}, of the entry point {entry.group}, cannot be imported: {error}; "
            "repair or uninstall that package"
        ) from error


def install_command(extra: str) -> str:
    """The command that installs the libraries of an extra."""
    return f"pip install 'homing[{extra}]'"


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
