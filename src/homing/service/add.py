"""Adding of uploads as references."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from homing import collection as library
from homing.errors import HomingError, PhotoError
from homing.service.audit import AuditEntry
from homing.service.keys import Caller
from homing.service.problems import to_problem
from homing.service.schemas import PhotoOutcome
from homing.service.state import Service
from homing.service.uploads import Upload, check_upload


async def add_uploads(service: Service, uploads: Sequence[Upload], caller: Caller) -> list[PhotoOutcome]:
    """Add uploads and return the outcome of each. Invalid ones do not affect the others."""
    alone = len(uploads) == 1
    good, outcomes = await check_uploads(service, uploads, alone=alone)
    if good:
        outcomes |= await service.write(partial(index_uploads, service, good, caller, alone=alone))
    return [outcomes[upload] for upload in uploads]


async def check_uploads(
    service: Service, uploads: Sequence[Upload], *, alone: bool
) -> tuple[list[Upload], dict[Upload, PhotoOutcome]]:
    """Valid uploads, and the outcomes of invalid ones. A single upload (`alone`) raises its error instead."""
    good, bad = [], {}
    for upload in uploads:
        try:
            await service.executors.lookup(partial(check_upload, upload, service.limits))
            good.append(upload)
        except PhotoError as error:
            if alone:
                raise
            bad[upload] = PhotoOutcome(photo=upload.name, id=None, state="failed", problem=str(error))
    return good, bad


def index_uploads(
    service: Service, uploads: Sequence[Upload], caller: Caller, *, alone: bool = False
) -> dict[Upload, PhotoOutcome]:
    """Store and index uploads, in the writer's thread. Files that do not become references are deleted.

    A single upload (`alone`) raises its error instead of returning it.
    """
    first: dict[tuple[str, str], Upload] = {}  # the first of identical uploads
    for upload in uploads:
        first.setdefault((upload.sha256, upload.name), upload)
    found = {}
    with service.upload_store.lock():
        try:
            paths = {str(service.upload_store.save(upload)): upload for upload in first.values()}
            for each in service.collection.add(list(paths)):
                found[paths[each.photo]] = each
                if alone and each.error is not None:
                    raise each.error
        finally:
            for upload in first.values():
                service.upload_store.delete_unless_source(upload, service.collection.storage)
    outcomes = {}
    for upload in uploads:
        outcome = to_photo_outcome(service, upload, found[first[upload.sha256, upload.name]])
        again = outcome.state == "added" and upload not in found
        outcomes[upload] = outcome.model_copy(update={"state": "known"}) if again else outcome
    service.audit.write(
        *(
            AuditEntry(caller.name, "added", outcome.id, upload.sha256, upload.name)
            for upload, outcome in outcomes.items()
            if outcome.state == "added" and outcome.id is not None
        )
    )
    return outcomes


def add_batch(service: Service, caller: Caller, uploads: Sequence[Upload]) -> list[PhotoOutcome]:
    """Add photos as one step of a job; errors become outcomes."""
    try:
        return list(index_uploads(service, uploads, caller).values())
    except HomingError as error:
        return [failed_outcome(service, upload, error) for upload in uploads]


def failed_outcome(service: Service, upload: Upload, error: HomingError) -> PhotoOutcome:
    """The outcome of a photo that failed with an error."""
    line = service.upload_store.redact_paths(to_problem(error).detail).removeprefix(f"{upload.name}: ")
    return PhotoOutcome(photo=upload.name, id=None, state="failed", problem=f"{upload.name}: {line}")


def to_photo_outcome(service: Service, upload: Upload, outcome: library.Outcome) -> PhotoOutcome:
    """Convert an outcome of the library, under the name of the upload."""
    catalog = service.collection.storage
    state = "known" if outcome.state == "moved" else outcome.state
    assert state in ("added", "known", "activated", "unchanged", "failed")
    return PhotoOutcome(
        photo=upload.name,
        id=catalog.find(upload.sha256) or catalog.find_released(upload.sha256),
        state=state,
        problem=service.upload_store.redact_paths(f"{upload.name}: {outcome.reason}") if outcome.reason else None,
        bytes_before=outcome.bytes_before,
        bytes_after=outcome.bytes_after,
        notes=outcome.notes,
    )
