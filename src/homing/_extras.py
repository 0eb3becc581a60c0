"""Libraries that only some need: they come with the extras of homing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from homing.errors import HomingError


def load_extra(module: str, extra: str) -> ModuleType:
    """A module of a library that comes with this extra of homing, or one line that says how to get it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise HomingError(f"{error.name} is missing; get it: pip install 'homing[{extra}]'") from error
