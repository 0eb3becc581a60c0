"""POST /v1/activate: activate a photo and return the file to release."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from homing.collection.uploads import display_name
from homing.errors import NotFoundError
from homing.explain import edit_results
from homing.imaging import difference, jnd_picture, to_image
from homing.photo import Photo
from homing.service.activate import OPTION_FIELDS, ActivateOptions, ActivationResult, activate_batch, activate_upload
from homing.service.auth import Contributor, Searcher
from homing.service.image_cache import RecordedFile, encode_jpeg, encode_png, read_recorded
from homing.service.jobs import Job
from homing.service.openapi import PHOTOS, multipart_body
from homing.service.problems import problem_responses
from homing.service.responses import etag_response, file_response, latest_release
from homing.service.routes.jobs import start_job
from homing.service.routes.photos import Id
from homing.service.schemas import ActivationReport, EditedCopy, JobStarted, to_quality
from homing.service.state import Service, ServiceDep, UploadSlot
from homing.service.uploads import Upload, check_upload, read_form

router = APIRouter()
PICTURES = ("before", "after", "difference", "jnd")
_MAX_SIDE = 1600  # maximum side of a picture of a report, in pixels
_TEXT = {"type": "string"}


@router.post(
    "/v1/activate",
    summary="Activate a photo and return the file to release",
    response_model=None,
    responses={
        **problem_responses(400, 408, 409, 413, 415),
        200: {
            "description": "The file to release; with ?report=true a report.",
            "content": {
                "image/*": {},
                "application/json": {"schema": {"$ref": "#/components/schemas/ActivationReport"}},
            },
        },
        202: {
            "description": "A job was started.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/JobStarted"}}},
        },
    },
    openapi_extra=multipart_body(PHOTOS, **dict.fromkeys(OPTION_FIELDS, _TEXT)),
)
async def activate(
    request: Request,
    caller: Contributor,
    service: ServiceDep,
    reservation: UploadSlot,
    response: Response,
    report: Annotated[bool, Query(description="Answer with a report instead of the file.")] = False,
    job: Annotated[bool, Query(description="Start a job and answer at once; several photos are allowed.")] = False,
) -> Response | ActivationReport | JobStarted:
    """Add a photo as a reference, activate it, check the written file, and return it with its metadata.

    X-Homing headers hold id, state, reason, PSNR, SSIM, L-infinity, the sizes of both files, and notes as JSON.
    """
    form = await read_form(request, service.limits, reservation)
    options = ActivateOptions.from_form(form.values)
    if job:
        uploads, step = form.photos(), partial(activate_batch, service, options, caller)
        return await start_job(service, Job("activate", len(uploads)), uploads, step, reservation, response)
    upload = form.photo()
    await service.executors.lookup(partial(check_upload, upload, service.limits))
    result = await service.write(partial(activate_upload, service, upload, options, caller))
    if report:
        return await service.executors.report(upload.name, partial(_report, service, upload, result))
    return _file(result)


def _file(result: ActivationResult) -> Response:
    outcome = result.outcome
    assert outcome.released is not None
    answer = file_response(result.data, display_name(outcome.released))
    quality = to_quality(outcome.psnr, outcome.ssim, outcome.linf)
    headers = {
        "Id": result.id,
        "State": outcome.state,
        "Reason": outcome.reason,
        "PSNR": quality.psnr,
        "SSIM": quality.ssim,
        "Linf": quality.linf,
        "Bytes-Before": outcome.bytes_before,
        "Bytes-After": outcome.bytes_after,
        "Notes": json.dumps(outcome.notes),
    }
    for name, value in headers.items():
        if value is not None:
            answer.headers[f"X-Homing-{name}"] = str(value)
    return answer


def _report(service: Service, upload: Upload, result: ActivationResult) -> ActivationReport:
    outcome = result.outcome
    before, after = (Photo.decode(data, upload.name) for data in (upload.data, result.data))
    survived = edit_results(service.collection, result.id, after, before)
    base = f"/v1/photos/{result.id}"
    assert outcome.state in ("activated", "unchanged")
    return ActivationReport(
        id=result.id,
        state=outcome.state,
        reason=outcome.reason,
        quality=to_quality(outcome.psnr, outcome.ssim, outcome.linf),
        bytes_before=len(upload.data),
        bytes_after=len(result.data),
        notes=outcome.notes,
        released=f"{base}/released",
        pictures={name: f"{base}/pictures/{name}" for name in PICTURES},
        edited_copies=[
            EditedCopy(edit=each.edit, found_before=bool(each.before), found_after=each.one_probe) for each in survived
        ],
    )


@router.get(
    "/v1/photos/{id}/pictures/{name}",
    summary="A picture of an activated reference",
    response_class=Response,
    responses={**problem_responses(404), 200: {"content": {"image/*": {}}, "description": "A picture."}},
)
async def picture(
    request: Request, _: Searcher, service: ServiceDep, id: Id, name: Annotated[str, Path(max_length=20)]
) -> Response:
    """The original (`before`), the latest released file (`after`), their `difference` magnified 20 times, or the
    just-noticeable-difference map (`jnd`)."""
    if name not in PICTURES:
        raise NotFoundError(f"there is no picture {name!a}; there are {', '.join(PICTURES)}")
    reference = await service.executors.lookup(partial(service.listing.one, id))
    latest = latest_release(reference)

    async def render() -> bytes:
        recorded = [(reference.photo, reference.sha256), (latest.path, latest.sha256)]
        before, after = [
            await service.executors.read(partial(read_recorded, service.upload_store.resolve_source(file), sha256))
            for file, sha256 in recorded
        ]
        return await service.executors.decode(before.name, before.pixels, partial(_render_picture, name, before, after))

    tag = f"{latest.sha256}-{name}"
    kind = "image/png" if name == "difference" else "image/jpeg"
    return await etag_response(request, tag, kind, partial(service.image_cache.get, tag, render))


def _render_picture(name: str, before: RecordedFile, after: RecordedFile) -> bytes:
    pixels = (after if name == "after" else before).photo().pixels()
    if name == "difference":
        image = difference(pixels, after.photo().pixels())
    else:
        image = jnd_picture(pixels) if name == "jnd" else to_image(pixels)
    image.thumbnail((_MAX_SIDE, _MAX_SIDE))
    return encode_png(image) if name == "difference" else encode_jpeg(image)
