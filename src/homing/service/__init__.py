"""A collection served over HTTP: API, page and client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from homing._public import import_lazily, list_public

if TYPE_CHECKING:
    from homing.service.app import create_app
    from homing.service.auth import Keys
    from homing.service.limits import Limits

__all__ = ["Keys", "Limits", "create_app"]

# The client needs none of the server's dependencies.
__getattr__ = import_lazily(__name__, {"Keys": "auth", "Limits": "limits", "create_app": "app"})
__dir__ = list_public(__name__)
