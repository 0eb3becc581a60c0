"""Where the references and releases of a collection are stored."""

from homing.collection.storage.base import Storage

__all__ = ["Storage"]
