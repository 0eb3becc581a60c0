"""Removal of references and their stored files."""

from __future__ import annotations

from homing.collection.uploads import display_name
from homing.errors import NotFoundError
from homing.service.audit import AuditEntry
from homing.service.keys import Caller
from homing.service.state import Service


def remove(service: Service, number: int, caller: Caller) -> bool:
    """Remove a reference, in the writer's thread. Returns False if there is none.

    Files stored by the service are deleted; files elsewhere belong to the user and stay.
    """
    try:
        removed = service.listing.one(number)
    except NotFoundError:
        return False
    files = [removed.photo, *(release.path for release in removed.releases)]
    collection = service.collection
    with service.upload_store.lock():
        # Not Collection.remove: the removal is in the audit log even if a stored file cannot be deleted.
        with collection.lock_for_writing():
            collection.remove_selected(collection.select(number))
        service.audit.write(AuditEntry(caller.name, "removed", number, removed.sha256, display_name(removed.photo)))
        for file in files:
            service.upload_store.delete(service.upload_store.resolve_source(file))
    return True
