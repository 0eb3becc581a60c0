"""POST /v1/activate: activate a photo and return the file to release; and pictures of what it changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Path, Query, Request, Response

from homing._io.paths import location
from homing.activation import resolve_recipe
from homing.collection import Outcome
from homing.collection.sources import display_name
from homing.errors import HomingError, NotFoundError
from homing.explain import edit_results
from homing.imaging import difference, encode_jpeg, encode_png, jnd_picture, to_image
from homing.photo import Photo, PhotoFile, format_name, read_file
from homing.service.auth import Caller, Contributor, Searcher
from homing.service.records import AuditEntry
from homing.service.responses import etag_response, file_response, latest_release, problem_responses
from homing.service.routes.photos import Id
from homing.service.schemas import ActivationReport, EditedCopy, JobStarted, PhotoOutcome, Quality, ReleaseHeaders
from homing.service.state import Service, ServiceDep, UploadSlot
from homing.service.uploads import PHOTOS, multipart_body, read_form

router = APIRouter()
_FIELDS = ("recipe", "psnr", "format", "graphics")
_FLAGS = {"": False, "false": False, "true": True}
PICTURES = ("before", "after", "difference", "jnd")
_MAX_SIDE = 1600  # maximum side of a picture of a report, in pixels


class _Activated(NamedTuple):
    """The id of a reference, the outcome of its activation, and the bytes of the file to release."""

    id: int
    outcome: Outcome
    data: bytes


@router.post(
    "/v1/activate",
    summary="Activate a photo and return the file to release",
    response_model=None,
    responses={
        **problem_responses(400, 408, 409, 413, 415),
        200: {
            "model": ActivationReport,
            "content": {"image/*": {}},
            "description": "The file to release; with ?report=true a report.",
        },
        202: {"model": JobStarted, "description": "A job was started."},
    },
    openapi_extra=multipart_body(PHOTOS, **{name: {"type": "string"} for name in _FIELDS}),
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
    work = partial(_activate, service, _parse_options(form.values), caller)
    if job:

        def step(batch: list[PhotoFile]) -> list[PhotoOutcome]:
            return [service.photo_outcome(upload, work(upload).outcome) for upload in batch]

        return await service.start_job("activate", form.photos(), step, reservation, response)
    upload = form.photo()
    await service.check(upload)
    activated = await service.write(partial(work, upload))
    if report:
        return await service.executors.run("report", partial(_report, service, upload, activated), photo=upload.name)
    return _file(activated)


def _parse_options(values: Mapping[str, str]) -> dict[str, Any]:
    """The options of `Collection.activate` in form fields; empty fields are ignored."""
    for name in values:
        if name not in _FIELDS:
            raise HomingError(f"unknown field {name!a}; available: photo, {', '.join(_FIELDS)}")
    try:
        psnr = float(values["psnr"]) if values.get("psnr") else None
    except ValueError:
        raise HomingError(f"psnr must be a number of dB, got {values['psnr']!a}") from None
    graphics = values.get("graphics", "")
    if graphics not in _FLAGS:
        raise HomingError(f"graphics must be true or false, got {graphics!a}")
    return {
        "recipe": resolve_recipe(values.get("recipe") or "homing", psnr=psnr),
        "format": format_name(values["format"]) if values.get("format") else None,
        "graphics": _FLAGS[graphics],
    }


def _activate(service: Service, options: dict[str, Any], caller: Caller, upload: PhotoFile) -> _Activated:
    """Activate one photo, in the writer's thread. The photo and the released file are on disk when this returns."""
    storage = service.collection.storage
    known = storage.find(upload.sha256)
    with service.upload_store.lock():
        out = service.upload_store.make_release_folder(upload)
        try:
            path = service.upload_store.save(upload)
            (outcome,) = service.collection.activate(path, out, **options)
            # Read now: later changes may remove or replace the file.
            data = read_file(location(outcome.released)) if outcome.released is not None else b""
        finally:
            service.upload_store.delete_unless_source(upload, storage)
            service.upload_store.remove_if_empty(out)
    number = storage.find(upload.sha256)
    if number is not None:
        entry = AuditEntry(caller.name, "released", number, upload.sha256, upload.name)
        added = [replace(entry, action="added")] if known is None else []
        service.audit.write(*added, *([entry] if outcome.error is None else []))
    if outcome.error is not None:
        raise _hide_source_folder(service, upload, outcome.error)
    assert number is not None
    return _Activated(number, outcome, data)


def _hide_source_folder(service: Service, upload: PhotoFile, error: HomingError) -> HomingError:
    """Replace the path of the original photo in an error by its name."""
    storage = service.collection.storage
    original = storage.find_released(upload.sha256)
    if original is None:
        return error
    source, _ = storage.source_and_state(original)
    return type(error)(str(error).replace(source, display_name(source)))


def _file(it: _Activated) -> Response:
    assert it.outcome.released is not None
    answer = file_response(it.data, display_name(it.outcome.released))
    psnr = Quality.measured(it.outcome).psnr
    answer.headers.update(ReleaseHeaders.of(it.outcome, id=it.id, psnr=psnr).to_headers())
    return answer


def _report(service: Service, upload: PhotoFile, it: _Activated) -> ActivationReport:
    survived = edit_results(service.collection, it.id, Photo.decode(it.data, upload.name), upload.photo())
    base = f"/v1/photos/{it.id}"
    return ActivationReport.of(
        it.outcome,
        id=it.id,
        quality=Quality.measured(it.outcome),
        bytes_before=len(upload.data),
        bytes_after=len(it.data),
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
    reference = await service.reference(id)
    latest = latest_release(reference)

    async def render() -> bytes:
        before = await service.read_recorded(reference.photo, reference.sha256)
        after = await service.read_recorded(latest.path, latest.sha256)
        return await service.executors.decode(before, partial(_render_picture, name, before, after))

    tag = f"{latest.sha256}-{name}"
    kind = "image/png" if name == "difference" else "image/jpeg"
    return await etag_response(request, tag, kind, partial(service.image_cache.get, tag, render))


def _render_picture(name: str, before: PhotoFile, after: PhotoFile) -> bytes:
    pixels = (after if name == "after" else before).photo().pixels()
    if name == "difference":
        image = difference(pixels, after.photo().pixels())
    else:
        image = jnd_picture(pixels) if name == "jnd" else to_image(pixels)
    image.thumbnail((_MAX_SIDE, _MAX_SIDE))
    return encode_png(image) if name == "difference" else encode_jpeg(image)
