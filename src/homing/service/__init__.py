"""A collection served over HTTP: API, page and client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from homing._imports import import_lazily

if TYPE_CHECKING:
    from homing.service.app import create_app
    from homing.service.auth import Keys
    from homing.service.limits import Limits

__all__ = ["Keys", "Limits", "create_app"]

# The client needs none of the server's dependencies.
__getattr__ = import_lazily(__name__, {"Keys": "auth", "Limits": "limits", "create_app": "app"})


def __dir__() -> list[str]:
    return sorted(__all__)
