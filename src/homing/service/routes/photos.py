"""/v1/photos: add, list, show and remove references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request, Response

from homing.collection.references import ReferenceQuery, State
from homing.collection.sources import display_name
from homing.imaging import encode_jpeg, make_thumbnail
from homing.photo import PhotoFile
from homing.service.auth import Admin, Caller, Contributor, Searcher
from homing.service.records import AuditEntry
from homing.service.responses import etag_response, file_response, latest_release, problem_responses
from homing.service.schemas import AddResponse, JobStarted, PhotoOutcome, Reference, ReferencePage
from homing.service.state import Service, ServiceDep, UploadSlot
from homing.service.uploads import PHOTOS, multipart_body, read_form

router = APIRouter()
_BATCH_SIZE = 16  # photos per step of a job
Id = Annotated[int, Path(ge=1, le=2**48, description="The id of a reference.")]


@router.post(
    "/v1/photos",
    status_code=HTTPStatus.CREATED,
    summary="Add photos as references",
    responses={
        **problem_responses(400, 408, 409, 413, 415),
        200: {"model": AddResponse, "description": "No photo was new."},
        202: {"model": JobStarted, "description": "A job was started."},
    },
    openapi_extra=multipart_body(PHOTOS),
)
async def add_photos(
    request: Request,
    caller: Contributor,
    service: ServiceDep,
    reservation: UploadSlot,
    response: Response,
    job: Annotated[bool, Query(description="Start a job and answer at once with its address.")] = False,
) -> AddResponse | JobStarted:
    """Add photos unchanged as references. They are on disk when this is answered; file names are kept."""
    uploads = (await read_form(request, service.limits, reservation)).photos()
    if job:
        step = partial(_add, service, caller)
        return await service.start_job("add", uploads, step, reservation, response, batch_size=_BATCH_SIZE)
    if len(uploads) == 1:  # its error is the answer; of several, one does not affect the others
        await service.check(uploads[0])
        outcomes = await service.write(partial(_add, service, caller, uploads, raise_errors=True))
    else:
        good, found = await service.check_uploads(uploads)
        if good:
            found |= zip(good, await service.write(partial(_add, service, caller, good)), strict=True)
        outcomes = [found[upload] for upload in uploads]
    if all(outcome.state != "added" for outcome in outcomes):
        response.status_code = HTTPStatus.OK
    return AddResponse(outcomes=outcomes)


def _add(
    service: Service, caller: Caller, uploads: Sequence[PhotoFile], *, raise_errors: bool = False
) -> list[PhotoOutcome]:
    """Store and index uploads, in the writer's thread. Files that do not become references are deleted."""
    upload_store, storage = service.upload_store, service.collection.storage
    first: dict[tuple[str, str], PhotoFile] = {}  # the first of identical uploads
    for upload in uploads:
        first.setdefault((upload.sha256, upload.name), upload)
    found = {}
    with upload_store.lock():
        try:
            paths = {str(upload_store.save(upload)): upload for upload in first.values()}
            for each in service.collection.add(list(paths)):
                found[paths[each.photo]] = each
                if raise_errors and each.error is not None:
                    raise each.error
        finally:
            for upload in first.values():
                upload_store.delete_unless_source(upload, storage)
    outcomes, entries = [], []
    for upload in uploads:
        outcome = service.photo_outcome(upload, found[first[upload.sha256, upload.name]])
        if outcome.state == "added" and upload not in found:
            outcome = replace(outcome, state="known")
        outcomes.append(outcome)
        if outcome.state == "added" and outcome.id is not None:
            entries.append(AuditEntry(caller.name, "added", outcome.id, upload.sha256, upload.name))
    service.audit.write(*entries)
    return outcomes


@router.get("/v1/photos", summary="List references, newest first", responses=problem_responses())
async def list_photos(
    _: Searcher,
    service: ServiceDep,
    after: Annotated[
        int | None, Query(ge=1, le=2**48, description="Only references with smaller ids than this.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    name: Annotated[str, Query(max_length=200, description="Only references whose file names contain this text.")] = "",
    state: Annotated[State | None, Query(description="Only references in this state.")] = None,
) -> ReferencePage:
    """One page of references; `next` is the address of the next page."""
    query = ReferenceQuery(state=state, name_contains=name, after=after, limit=limit + 1)
    found = await service.executors.run(
        "browse", lambda: list(service.scan_listing.references(query, newest_first=True))
    )
    total = await service.executors.run("browse", partial(service.scan_listing.count, name, state))
    page, more = found[:limit], None
    if len(found) > limit:
        filters = {key: value for key, value in (("name", name), ("state", state)) if value}
        more = f"/v1/photos?{urlencode({'after': page[-1].id, 'limit': limit, **filters})}"
    return ReferencePage(photos=[Reference.from_reference(each) for each in page], next=more, total=total)


@router.get("/v1/photos/{id}", summary="One reference", responses=problem_responses(404))
async def one_photo(_: Searcher, service: ServiceDep, id: Id) -> Reference:
    """A reference with its released files and their quality."""
    return Reference.from_reference(await service.reference(id))


@router.get(
    "/v1/photos/{id}/thumbnail",
    summary="Thumbnail of a reference",
    response_class=Response,
    responses={**problem_responses(404), 200: {"content": {"image/jpeg": {}}, "description": "A JPEG."}},
)
async def thumbnail(
    request: Request, _: Searcher, service: ServiceDep, id: Id, side: Annotated[int, Query(ge=16, le=2048)] = 320
) -> Response:
    """A JPEG of at most `side` pixels a side; 404 if the original file is gone or has changed."""
    reference = await service.reference(id)

    async def render() -> bytes:
        file = await service.read_recorded(reference.photo, reference.sha256)
        return await service.executors.decode(file, lambda: encode_jpeg(make_thumbnail(file.photo().pixels(), side)))

    tag = f"{reference.sha256}-{side}"
    cache_control = "private, max-age=86400"  # a reference's thumbnail never changes
    return await etag_response(
        request, tag, "image/jpeg", partial(service.image_cache.get, tag, render), cache_control=cache_control
    )


@router.get(
    "/v1/photos/{id}/released",
    summary="Latest released file of a reference",
    response_class=Response,
    responses={**problem_responses(404), 200: {"content": {"image/*": {}}, "description": "The file to release."}},
)
async def released(_: Searcher, service: ServiceDep, id: Id) -> Response:
    """The latest released file, as an attachment under the name of the photo."""
    latest = latest_release(await service.reference(id))
    file = await service.read_recorded(latest.path, latest.sha256)
    return file_response(file.data, display_name(latest.path))


@router.delete(
    "/v1/photos/{id}",
    status_code=HTTPStatus.NO_CONTENT,
    summary="Remove a reference",
    responses=problem_responses(404, 409),
    response_class=Response,
)
async def remove_photo(caller: Admin, service: ServiceDep, id: Id) -> Response:
    """Remove a reference, and the files that the service stores of it. This cannot be undone."""
    await service.write(partial(_remove, service, id, caller))
    return Response(status_code=HTTPStatus.NO_CONTENT)


def _remove(service: Service, number: int, caller: Caller) -> None:
    """Remove a reference, in the writer's thread.

    Files stored by the service are deleted; files elsewhere belong to the user and stay.
    """
    removed = service.listing.reference(number)
    files = [removed.photo, *(release.path for release in removed.releases)]
    collection = service.collection
    with service.upload_store.lock():
        # Not Collection.remove: the removal is in the audit log even if a stored file cannot be deleted.
        with collection.lock_for_writing():
            collection.remove_selected(collection.select(number))
        service.audit.write(AuditEntry(caller.name, "removed", number, removed.sha256, display_name(removed.photo)))
        for file in files:
            service.upload_store.delete(service.upload_store.resolve_source(file))
