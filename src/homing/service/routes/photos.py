"""/v1/photos: references come, are looked at, and go."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request, Response

from homing.errors import GoneError
from homing.service.access import Admin, Contributor, Searcher
from homing.service.adding import add, add_as_step
from homing.service.answers import JobStarted, Outcomes, Reference, ReferenceInFull, References
from homing.service.bodies import PHOTOS, takes
from homing.service.jobs import Job
from homing.service.pictures import read_recorded, small_jpeg
from homing.service.problems import responses
from homing.service.removing import remove
from homing.service.routes.jobs import start_job
from homing.service.showing import released_of, released_response, tagged_response
from homing.service.state import Here, Room
from homing.service.uploads import read_form

router = APIRouter()
_STEP = 16  # photos of a job that are added together
Id = Annotated[int, Path(ge=1, le=2**48, description="The id of a reference.")]
_PICTURE: dict[int | str, dict[str, Any]] = {200: {"content": {"image/jpeg": {}}, "description": "A JPEG."}}


@router.post(
    "/v1/photos",
    status_code=HTTPStatus.CREATED,
    summary="Add photos as references",
    responses={**responses(400, 408, 409, 413, 415), 202: {"model": JobStarted, "description": "A job was started."}},
    openapi_extra=takes(PHOTOS),
)
async def add_photos(
    request: Request,
    caller: Contributor,
    service: Here,
    held: Room,
    response: Response,
    job: Annotated[bool, Query(description="Answer at once, with the address of a job.")] = False,
) -> Outcomes | JobStarted:
    """Index photos as they are. What is answered as added is on disk; the file is kept under the name it came with."""
    uploads = (await read_form(request, service.limits, held)).photos()
    if not job:
        return Outcomes(outcomes=await add(service, uploads, caller))
    do = partial(add_as_step, service, caller)
    return await start_job(service, Job("add", len(uploads)), uploads, do, held, response, together=_STEP)


@router.get("/v1/photos", summary="The references, newest first", responses=responses())
async def list_photos(
    _: Searcher,
    service: Here,
    after: Annotated[int | None, Query(ge=1, le=2**48, description="Those that came before this id.")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    name: Annotated[str, Query(max_length=200, description="Those whose file names hold this text.")] = "",
) -> References:
    """A page of the collection; `next` leads to the one after it."""
    listed = await service.lanes.browse(partial(service.browsing.page, limit + 1, after=after, name=name))
    total = await service.lanes.browse(partial(service.browsing.count, name))
    shown = listed[:limit]
    more = {"after": shown[-1].id, "limit": limit, **({"name": name} if name else {})} if len(listed) > limit else None
    return References(
        photos=[Reference.of(each) for each in shown],
        next=f"/v1/photos?{urlencode(more)}" if more else None,
        total=total,
    )


@router.get("/v1/photos/{id}", summary="One reference", responses=responses(404))
async def one_photo(_: Searcher, service: Here, id: Id) -> ReferenceInFull:
    """A reference, with what was released of it, and its quality."""

    def look() -> ReferenceInFull:
        listed = service.listing.one(id)
        return ReferenceInFull(**Reference.of(listed).model_dump(), releases=released_of(service, id))

    return await service.lanes.look(look)


@router.get(
    "/v1/photos/{id}/thumbnail",
    summary="A small picture of a reference",
    response_class=Response,
    responses={**responses(404), **_PICTURE},
)
async def thumbnail(
    request: Request, _: Searcher, service: Here, id: Id, side: Annotated[int, Query(ge=16, le=2048)] = 320
) -> Response:
    """A JPEG of at most so many pixels a side, from the file the reference was added from, if that is there still."""
    listed = await service.lanes.look(partial(service.listing.one, id))

    async def draw() -> bytes:
        file = await service.lanes.read(partial(read_recorded, service.keeping.locate(listed.source), listed.sha256))
        return await service.lanes.decode(file.name, file.pixels, partial(small_jpeg, file, side))

    tag = f"{listed.sha256}-{side}"
    kept = "private, max-age=86400"  # of one reference it is always the same
    return await tagged_response(request, tag, "image/jpeg", partial(service.pictures.get, tag, draw), kept=kept)


@router.get(
    "/v1/photos/{id}/released",
    summary="The file that was released of a reference last",
    response_class=Response,
    responses={**responses(404), 200: {"content": {"image/*": {}}, "description": "The file to release."}},
)
async def released(_: Searcher, service: Here, id: Id) -> Response:
    """The bytes that may be sent out, under the name of the photo."""
    return await service.lanes.read(partial(released_response, service, id))


@router.delete(
    "/v1/photos/{id}",
    status_code=HTTPStatus.NO_CONTENT,
    summary="Remove a reference",
    responses=responses(404, 409),
    response_class=Response,
)
async def remove_photo(caller: Admin, service: Here, id: Id) -> Response:
    """Remove a reference for good, and what the service keeps of it."""
    if not await service.write(partial(remove, service, id, caller)):
        raise GoneError(f"no reference has the id {id}")
    return Response(status_code=HTTPStatus.NO_CONTENT)
