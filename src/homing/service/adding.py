"""Uploads become references."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from homing import collection as library
from homing.errors import HomingError, PhotoError
from homing.service.answers import Outcome
from homing.service.state import Service
from homing.service.uploads import Upload, examine


async def add(service: Service, uploads: Sequence[Upload]) -> list[Outcome]:
    """What came of each upload; those that are no photos do not keep the others out."""
    good, outcomes = await examined(service, uploads)
    if good:
        outcomes |= await service.write(partial(add_now, service, good))
    return [outcomes[upload] for upload in uploads]


async def examined(service: Service, uploads: Sequence[Upload]) -> tuple[list[Upload], dict[Upload, Outcome]]:
    """The uploads that may be decoded, and why the others may not."""
    good, bad = [], {}
    for upload in uploads:
        try:
            await service.lanes.look(partial(examine, upload, service.limits))
            good.append(upload)
        except PhotoError as error:
            if len(uploads) == 1:  # then the request as a whole has this problem
                raise
            bad[upload] = Outcome(photo=upload.name, id=None, state="failed", problem=str(error))
    return good, bad


def add_now(service: Service, uploads: Sequence[Upload]) -> dict[Upload, Outcome]:
    """Keep files and index them, in the writer's thread. A file that is no reference's source is not kept."""
    paths = {upload: service.keeping.keep(upload) for upload in uploads}
    try:
        found = {outcome.photo: outcome for outcome in service.collection.add(list(paths.values()))}
    except HomingError:
        for path in paths.values():
            drop_unless_source(service, path)
        raise
    outcomes = {}
    for upload, path in paths.items():
        drop_unless_source(service, path)
        outcomes[upload] = outcome_of(service, upload, found[path])
    return outcomes


def outcome_of(service: Service, upload: Upload, outcome: library.Outcome) -> Outcome:
    """What the library says of a file, under the name it came with."""
    catalogue = service.collection.folder.catalogue
    state = "known" if outcome.state == "moved" else outcome.state
    assert state in ("added", "known", "activated", "unchanged", "failed")
    return Outcome(
        photo=upload.name,
        id=catalogue.find(upload.sha256) or catalogue.find_released(upload.sha256),
        state=state,
        problem=service.keeping.without_paths(outcome.reason) if outcome.reason else None,
    )


def drop_unless_source(service: Service, path: Path) -> None:
    """Remove a kept file that no reference came from: it was known under another name, or could not be read."""
    if not service.collection.folder.catalogue.at(str(path)):
        service.keeping.drop(path)
