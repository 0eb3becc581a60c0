"""A collection served over HTTP: API, page and client."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from homing.service.app import create_app
    from homing.service.auth import Keys
    from homing.service.limits import Limits

__all__ = ["Keys", "Limits", "create_app"]

# Imported on first use: the client needs none of the server's dependencies.
_MODULE_OF = {"Keys": "auth", "Limits": "limits", "create_app": "app"}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'homing.service' has no attribute '{name}'")
    return getattr(import_module(f"homing.service.{_MODULE_OF[name]}"), name)
