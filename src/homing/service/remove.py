"""Removal of references and their stored files."""

from __future__ import annotations

from homing.collection._remove import remove_references
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
        listed = service.listing.one(number)
    except NotFoundError:
        return False
    files = [listed.source, *(row.path for row, _ in service.listing.releases(number))]
    collection = service.collection
    with service.upload_store.lock():
        # Not Collection.remove: the removal is in the audit log even if a stored file cannot be deleted.
        with collection.lock_for_writing():
            remove_references(collection.folder, collection.find(number))
        service.audit.write(AuditEntry(caller.name, "removed", number, listed.sha256, display_name(listed.source)))
        for file in files:
            service.upload_store.delete(service.upload_store.resolve_source(file))
    return True
