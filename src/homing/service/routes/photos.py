"""/v1/photos: add, list, show and remove references."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request, Response

from homing.collection.references import ReferenceQuery
from homing.errors import NotFoundError
from homing.service.add import add_batch, add_uploads
from homing.service.auth import Admin, Contributor, Searcher
from homing.service.image_cache import read_recorded, thumbnail_jpeg
from homing.service.jobs import Job
from homing.service.openapi import PHOTOS, multipart_body
from homing.service.problems import problem_responses
from homing.service.remove import remove
from homing.service.responses import etag_response, released_response
from homing.service.routes.jobs import start_job
from homing.service.schemas import AddResponse, JobStarted, Reference, ReferencePage
from homing.service.state import ServiceDep, UploadSlot
from homing.service.uploads import read_form

router = APIRouter()
_BATCH_SIZE = 16  # photos per step of a job
Id = Annotated[int, Path(ge=1, le=2**48, description="The id of a reference.")]
_PICTURE: dict[int | str, dict[str, Any]] = {200: {"content": {"image/jpeg": {}}, "description": "A JPEG."}}


@router.post(
    "/v1/photos",
    status_code=HTTPStatus.CREATED,
    summary="Add photos as references",
    responses={
        **problem_responses(400, 408, 409, 413, 415),
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
    if not job:
        return AddResponse(outcomes=await add_uploads(service, uploads, caller))
    step = partial(add_batch, service, caller)
    return await start_job(
        service, Job("add", len(uploads)), uploads, step, reservation, response, batch_size=_BATCH_SIZE
    )


@router.get("/v1/photos", summary="List references, newest first", responses=problem_responses())
async def list_photos(
    _: Searcher,
    service: ServiceDep,
    after: Annotated[
        int | None, Query(ge=1, le=2**48, description="Only references with smaller ids than this.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    name: Annotated[str, Query(max_length=200, description="Only references whose file names contain this text.")] = "",
    state: Annotated[
        Literal["passive", "activated", "unchanged"] | None, Query(description="Only references in this state.")
    ] = None,
) -> ReferencePage:
    """One page of references; `next` is the address of the next page."""
    query = ReferenceQuery(state=state, name_contains=name, after=after, limit=limit + 1)
    found = await service.executors.browse(lambda: list(service.scan_listing.references(query, newest_first=True)))
    total = await service.executors.browse(partial(service.scan_listing.count, name, state))
    page, more = found[:limit], None
    if len(found) > limit:
        filters = {key: value for key, value in (("name", name), ("state", state)) if value}
        more = f"/v1/photos?{urlencode({'after': page[-1].id, 'limit': limit, **filters})}"
    return ReferencePage(photos=[Reference.from_reference(each) for each in page], next=more, total=total)


@router.get("/v1/photos/{id}", summary="One reference", responses=problem_responses(404))
async def one_photo(_: Searcher, service: ServiceDep, id: Id) -> Reference:
    """A reference with its released files and their quality."""
    return Reference.from_reference(await service.executors.lookup(partial(service.listing.one, id)))


@router.get(
    "/v1/photos/{id}/thumbnail",
    summary="Thumbnail of a reference",
    response_class=Response,
    responses={**problem_responses(404), **_PICTURE},
)
async def thumbnail(
    request: Request, _: Searcher, service: ServiceDep, id: Id, side: Annotated[int, Query(ge=16, le=2048)] = 320
) -> Response:
    """A JPEG of at most `side` pixels a side; 404 if the original file is gone or has changed."""
    reference = await service.executors.lookup(partial(service.listing.one, id))

    async def render() -> bytes:
        file = await service.executors.read(
            partial(read_recorded, service.upload_store.resolve_source(reference.photo), reference.sha256)
        )
        return await service.executors.decode(file.name, file.pixels, partial(thumbnail_jpeg, file, side))

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
    return await service.executors.read(partial(released_response, service, id))


@router.delete(
    "/v1/photos/{id}",
    status_code=HTTPStatus.NO_CONTENT,
    summary="Remove a reference",
    responses=problem_responses(404, 409),
    response_class=Response,
)
async def remove_photo(caller: Admin, service: ServiceDep, id: Id) -> Response:
    """Remove a reference, and the files that the service stores of it. This cannot be undone."""
    if not await service.write(partial(remove, service, id, caller)):
        raise NotFoundError(f"no reference has the id {id}")
    return Response(status_code=HTTPStatus.NO_CONTENT)
