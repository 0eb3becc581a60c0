"""POST /v1/activate: a photo comes, and what may be released of it goes back."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from homing.errors import GoneError
from homing.evaluation.explanation import survivals
from homing.evaluation.pictures import difference, jnd_picture, to_image
from homing.photo import Photo
from homing.service.access import Contributor, Searcher
from homing.service.activating import FIELDS, Release, Wish, activate_as_step, activate_now
from homing.service.answers import JobStarted, Report, Survival
from homing.service.bodies import PHOTOS, takes
from homing.service.jobs import Job
from homing.service.pictures import Recorded, as_jpeg, as_png, read_recorded
from homing.service.problems import responses
from homing.service.routes.jobs import start_job
from homing.service.routes.photos import Id
from homing.service.showing import file_response, last_release, quality_of, tagged_response
from homing.service.state import Here, Room, Service
from homing.service.uploads import Upload, examine, read_form

router = APIRouter()
SHOWN = ("before", "after", "difference", "jnd")
_SIDE = 1600  # pixels of a picture of a report, at most
_TEXT = {"type": "string"}


@router.post(
    "/v1/activate",
    summary="Activate a photo, and get what may be released",
    response_model=None,
    responses={
        **responses(400, 408, 409, 413, 415),
        200: {
            "description": "The file to release; with ?report=true what is known of it.",
            "content": {
                "image/*": {},
                "application/json": {"schema": {"$ref": "#/components/schemas/Report"}},
            },
        },
        202: {
            "description": "A job was started.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/JobStarted"}}},
        },
    },
    openapi_extra=takes(PHOTOS, **dict.fromkeys(FIELDS, _TEXT)),
)
async def activate(
    request: Request,
    caller: Contributor,
    service: Here,
    held: Room,
    response: Response,
    report: Annotated[bool, Query(description="Answer with figures and pictures instead of the file.")] = False,
    job: Annotated[bool, Query(description="Answer at once; several photos may come.")] = False,
) -> Response | Report | JobStarted:
    """Index a photo, move its pixels, verify the file that is written, and send it back, its metadata kept."""
    form = await read_form(request, service.limits, held)
    wish = Wish.of(form.values)
    if job:
        uploads, do = form.photos(), partial(activate_as_step, service, wish, caller)
        return await start_job(service, Job("activate", len(uploads)), uploads, do, held, response)
    upload = form.photo()
    await service.lanes.look(partial(examine, upload, service.limits))
    release = await service.write(partial(activate_now, service, upload, wish, caller))
    if report:
        return await service.lanes.report(upload.name, partial(_report, service, upload, release))
    return _file(release)


def _file(release: Release) -> Response:
    outcome = release.outcome
    assert outcome.released is not None
    answer = file_response(release.data, outcome.released.name)
    quality = quality_of(outcome.psnr, outcome.ssim, outcome.linf)
    told = {
        "Id": release.id,
        "State": outcome.state,
        "Reason": _reason(release),
        "PSNR": quality.psnr,
        "SSIM": quality.ssim,
        "Linf": quality.linf,
    }
    for name, value in told.items():
        if value is not None:
            answer.headers[f"X-Homing-{name}"] = str(value)
    return answer


def _report(service: Service, upload: Upload, release: Release) -> Report:
    outcome = release.outcome
    before, after = (Photo.decode(data, upload.name) for data in (upload.data, release.data))
    survived = survivals(service.collection, release.id, after, before)
    base = f"/v1/photos/{release.id}"
    assert outcome.state in ("activated", "unchanged")
    return Report(
        id=release.id,
        state=outcome.state,
        reason=_reason(release),
        quality=quality_of(outcome.psnr, outcome.ssim, outcome.linf),
        released=f"{base}/released",
        pictures={name: f"{base}/pictures/{name}" for name in SHOWN},
        survives=[Survival(edit=each.edit, before=bool(each.before), after=each.one_probe) for each in survived],
    )


def _reason(release: Release) -> str | None:
    """Why the photo was released as it was, or otherwise than usual; without the path that stands before it."""
    reason = release.outcome.reason
    return None if reason is None else reason.removeprefix(f"{release.outcome.photo}: ")


@router.get(
    "/v1/photos/{id}/pictures/{name}",
    summary="Before, after, what differs, and where there was room",
    response_class=Response,
    responses={**responses(404), 200: {"content": {"image/*": {}}, "description": "A picture."}},
)
async def picture(
    request: Request, _: Searcher, service: Here, id: Id, name: Annotated[str, Path(max_length=20)]
) -> Response:
    """A picture of a reference as it was (`before`) and as it was released last (`after`), of the `difference` of the
    two, twenty times as strong, and of the room its pixels had (`jnd`)."""
    if name not in SHOWN:
        raise GoneError(f"there is no picture {name!a}; there are {', '.join(SHOWN)}")
    listed = await service.lanes.look(partial(service.listing.one, id))
    row = await service.lanes.look(partial(last_release, service, id))

    async def draw() -> bytes:
        recorded = [(listed.source, listed.sha256), (row.path, row.sha256)]
        before, after = [
            await service.lanes.read(partial(read_recorded, service.keeping.locate(file), sha256))
            for file, sha256 in recorded
        ]
        return await service.lanes.decode(before.name, before.pixels, partial(_drawn, name, before, after))

    tag = f"{row.sha256}-{name}"
    kind = "image/png" if name == "difference" else "image/jpeg"
    return await tagged_response(request, tag, kind, partial(service.pictures.get, tag, draw))


def _drawn(name: str, before: Recorded, after: Recorded) -> bytes:
    view = (after if name == "after" else before).photo().view()
    if name == "difference":
        image = difference(view, after.photo().view())
    else:
        image = jnd_picture(view) if name == "jnd" else to_image(view)
    image.thumbnail((_SIDE, _SIDE))
    return as_png(image) if name == "difference" else as_jpeg(image)
