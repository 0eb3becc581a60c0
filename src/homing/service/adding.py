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
from homing.service.problems import problem_of
from homing.service.state import Service
from homing.service.uploads import Upload, examine


async def add(service: Service, uploads: Sequence[Upload], caller: Caller) -> list[Outcome]:
    """What came of each upload; those that are no photos do not keep the others out."""
    alone = len(uploads) == 1
    good, outcomes = await examined(service, uploads, alone=alone)
    if good:
        outcomes |= await service.write(partial(add_now, service, good, caller, alone=alone))
    return [outcomes[upload] for upload in uploads]


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


def add_now(
    service: Service, uploads: Sequence[Upload], caller: Caller, *, alone: bool = False
) -> dict[Upload, Outcome]:
    """Keep files and index them, in the writer's thread. A file that is no reference's source is not kept.

    If one came `alone`, what is wrong with it is raised.
    """
    first: dict[tuple[str, str], Upload] = {}  # of those that came twice
    for upload in uploads:
        first.setdefault((upload.sha256, upload.name), upload)
    found = {}
    with service.keeping.held():
        try:
            paths = {service.keeping.keep(upload): upload for upload in first.values()}
            for each in service.collection.add(list(paths)):
                assert isinstance(each.photo, Path)
                found[paths[each.photo]] = each
                if alone and each.error is not None:
                    raise each.error
        finally:
            for upload in first.values():
                drop_unless_source(service, upload)
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
        return [failed(service, upload, error) for upload in uploads]


def failed(service: Service, upload: Upload, error: HomingError) -> Outcome:
    """What an error means to one photo of a job."""
    line = service.keeping.without_paths(problem_of(error).detail).removeprefix(f"{upload.name}: ")
    return Outcome(photo=upload.name, id=None, state="failed", problem=f"{upload.name}: {line}")


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


def drop_unless_source(service: Service, upload: Upload) -> None:
    """Remove a kept file that no reference came from: it was known under another name, or could not be read."""
    catalogue, path = service.collection.folder.catalogue, service.keeping.place_of(upload)
    number = catalogue.find(upload.sha256)
    if number is None or service.keeping.locate(catalogue.describe(number)[0]) != path:
        service.keeping.drop(path)
