"""References go, and with them what the service kept of them."""

from __future__ import annotations

from homing.errors import GoneError
from homing.service.state import Service


def remove(service: Service, number: int) -> bool:
    """Remove a reference, in the writer's thread; False if there is none.

    Its files are removed where they are the service's own; elsewhere they are the user's, and are left alone.
    """
    try:
        listed = service.listing.one(number)
    except GoneError:
        return False
    files = [listed.source, *(row.path for row, _ in service.listing.releases(number))]
    service.collection.remove(number)
    for file in files:
        service.keeping.drop(service.keeping.locate(file))
    return True
