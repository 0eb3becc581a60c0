"""Optional libraries, installed with the extras of homing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from homing.errors import HomingError


def load_extra(module: str, extra: str) -> ModuleType:
    """Import a module of an optional library; if it is missing, the error names the extra that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise _missing(error.name, extra) from error
    except ImportError as error:
        raise HomingError(f"{module} cannot be loaded: {error}; install it again") from error


def install_command(extra: str) -> str:
    """The command that installs the libraries of an extra."""
    return f"pip install 'homing[{extra}]'"


def _missing(library: str | None, extra: str) -> HomingError:
    return HomingError(f"{library} is missing; get it: {install_command(extra)}")
