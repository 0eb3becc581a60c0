"""References go, and with them what the service kept of them."""

from __future__ import annotations

from homing.errors import GoneError
from homing.service.audit import Entry
from homing.service.keeping import shown_name
from homing.service.keys import Caller
from homing.service.state import Service


def remove(service: Service, number: int, caller: Caller) -> bool:
    """Remove a reference, in the writer's thread; False if there is none.

    Its files are removed where they are the service's own; elsewhere they are the user's, and are left alone.
    """
    try:
        listed = service.listing.one(number)
    except GoneError:
        return False
    files = [listed.source, *(row.path for row, _ in service.listing.releases(number))]
    with service.keeping.held():
        service.collection.remove(number)
        service.audit.write(Entry(caller.name, "removed", number, listed.sha256, shown_name(listed.source)))
        for file in files:
            service.keeping.drop(service.keeping.locate(file))
    return True
