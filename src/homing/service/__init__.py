"""The service: a collection over HTTP, and a page to use it with."""

from homing.service.app import create_app
from homing.service.keys import Keys
from homing.service.limits import Limits

__all__ = ["Keys", "Limits", "create_app"]
