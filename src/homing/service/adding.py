"""Uploads become references."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from homing import collection as library
from homing.errors import HomingError, PhotoError
from homing.service.answers import Outcome
from homing.service.audit import Entry
from homing.service.keys import Caller
from homing.service.state import Service
from homing.service.uploads import Upload, examine


async def add(service: Service, uploads: Sequence[Upload], caller: Caller) -> list[Outcome]:
    """What came of each upload; those that are no photos do not keep the others out."""
    good, outcomes = await examined(service, uploads, alone=len(uploads) == 1)
    if good:
        outcomes |= await service.write(partial(add_now, service, good, caller))
    found = [outcomes[upload] for upload in uploads]
    if len(found) == 1 and found[0].state == "failed":  # then the request as a whole has this problem
        raise PhotoError(found[0].problem or f"{found[0].photo}: cannot be added")
    return found


async def examined(
    service: Service, uploads: Sequence[Upload], *, alone: bool
) -> tuple[list[Upload], dict[Upload, Outcome]]:
    """The uploads that may be decoded, and why the others may not. If one came `alone`, all has its problem."""
    good, bad = [], {}
    for upload in uploads:
        try:
            await service.lanes.look(partial(examine, upload, service.limits))
            good.append(upload)
        except PhotoError as error:
            if alone:
                raise
            bad[upload] = Outcome(photo=upload.name, id=None, state="failed", problem=str(error))
    return good, bad


def add_now(service: Service, uploads: Sequence[Upload], caller: Caller) -> dict[Upload, Outcome]:
    """Keep files and index them, in the writer's thread. A file that is no reference's source is not kept."""
    first: dict[tuple[str, str], Upload] = {}  # of those that came twice
    for upload in uploads:
        first.setdefault((upload.sha256, upload.name), upload)
    paths = {service.keeping.keep(upload): upload for upload in first.values()}
    try:
        found = {
            paths[each.photo]: each for each in service.collection.add(list(paths)) if isinstance(each.photo, Path)
        }
    finally:
        for path, upload in paths.items():
            drop_unless_source(service, path, upload)
    outcomes = {}
    for upload in uploads:
        outcome = outcome_of(service, upload, found[first[upload.sha256, upload.name]])
        again = outcome.state == "added" and upload not in found
        outcomes[upload] = outcome.model_copy(update={"state": "known"}) if again else outcome
    service.audit.write(
        *(
            Entry(caller.name, "added", outcome.id, upload.sha256, upload.name)
            for upload, outcome in outcomes.items()
            if outcome.state == "added" and outcome.id is not None
        )
    )
    return outcomes


def add_as_step(service: Service, caller: Caller, uploads: Sequence[Upload]) -> list[Outcome]:
    """The same as one step of a job: what goes wrong with it stops no other."""
    try:
        return list(add_now(service, uploads, caller).values())
    except HomingError as error:
        line = service.keeping.without_paths(str(error))
        return [Outcome(photo=each.name, id=None, state="failed", problem=f"{each.name}: {line}") for each in uploads]


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


def drop_unless_source(service: Service, path: Path, upload: Upload) -> None:
    """Remove a kept file that no reference came from: it was known under another name, or could not be read."""
    catalogue = service.collection.folder.catalogue
    number = catalogue.find(upload.sha256)
    if number is None or service.keeping.locate(catalogue.describe(number)[0]) != path:
        service.keeping.drop(path)
