"""Libraries that only some need: they come with the extras of homing."""

from __future__ import annotations

from importlib import import_module, metadata
from types import ModuleType

from homing.errors import HomingError

_INSTALL_HINTS = {
    "augly.image": "it needs libmagic of the system (Debian: apt-get install libmagic1; macOS: brew install libmagic)"
}


def load_extra(module: str, extra: str) -> ModuleType:
    """A module of a library that comes with this extra of homing, or one line that says how to get it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise _missing(error.name, extra) from error
    except ImportError as error:
        raise HomingError(
            f"{module} cannot be loaded: {error}; {_INSTALL_HINTS.get(module, 'install it again')}"
        ) from error


def version_of_extra(library: str, extra: str) -> str:
    """Which version of a library that comes with this extra is there."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError as error:
        raise _missing(library, extra) from error


def install_command(extra: str) -> str:
    """What brings the libraries of an extra."""
    return f"pip install 'homing[{extra}]'"


def _missing(library: str | None, extra: str) -> HomingError:
    return HomingError(f"{library} is missing; get it: {install_command(extra)}")
