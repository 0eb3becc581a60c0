"""POST /v1/search: find the references that a photo is a copy of; POST /v1/compare: compare two photos."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from time import perf_counter
from typing import Annotated, NamedTuple

import numpy as np
import torch
from fastapi import APIRouter, HTTPException, Query, Request
from PIL import Image
from torch import Tensor

from homing.collection.search import format_probability, query_variants
from homing.errors import HomingError
from homing.imaging import embed, make_thumbnail, overlay_photo
from homing.perception import measure
from homing.photo import PhotoFile
from homing.service.auth import Searcher
from homing.service.responses import problem_details, problem_responses, to_problem
from homing.service.schemas import (
    BatchSearchResponse,
    Comparison,
    Quality,
    QueryProblem,
    QueryResult,
    SearchResponse,
    SearchTimings,
)
from homing.service.state import Service, ServiceDep, UploadSlot
from homing.service.uploads import PHOTOS, TWO_PHOTOS, multipart_body, read_form

router = APIRouter()
_MAX_CONCURRENT = 8  # photos of one request that are processed at once, so that other requests get their turn

MatchCount = Annotated[int, Query(ge=1, le=1000, description="Maximum number of matches.")]
MaxFalseMatch = Annotated[
    float | None, Query(gt=0, le=1, description="Omit matches with a larger false-match probability.")
]
Variants = Annotated[bool, Query(description="Also search for the quarter turns and the mirror image of the photo.")]
TimedResult = tuple[QueryResult, SearchTimings]


@router.post(
    "/v1/search",
    summary="Search for photos",
    responses=problem_responses(400, 408, 413, 415),
    openapi_extra=multipart_body(PHOTOS),
)
async def search(
    request: Request,
    _: Searcher,
    service: ServiceDep,
    reservation: UploadSlot,
    k: MatchCount = 10,
    max_false_match: MaxFalseMatch = None,
    variants: Variants = False,
) -> SearchResponse | BatchSearchResponse:
    """Return the verdict and the nearest references of a photo, smallest false-match probability first.

    A request with several photos is answered with one result per photo, in the order of the request.
    """
    uploads = (await read_form(request, service.limits, reservation)).photos()
    find = partial(_search, service, k=k, max_false_match=max_false_match, variants=variants)
    if len(uploads) == 1:
        result, milliseconds = await find(uploads[0])
        return SearchResponse(**vars(result), milliseconds=milliseconds)
    semaphore = asyncio.Semaphore(_MAX_CONCURRENT)

    async def find_or_fail(upload: PhotoFile) -> TimedResult | QueryProblem:
        async with semaphore:
            try:
                return await find(upload)
            except (HTTPException, HomingError) as error:
                return QueryProblem(query=upload.name, problem=problem_details(request, to_problem(error)))

    found = await asyncio.gather(*(find_or_fail(upload) for upload in uploads))
    return BatchSearchResponse(
        results=[each if isinstance(each, QueryProblem) else each[0] for each in found],
        milliseconds=_total([each[1] for each in found if not isinstance(each, QueryProblem)]),
    )


async def _search(
    service: Service, upload: PhotoFile, *, k: int, max_false_match: float | None, variants: bool
) -> TimedResult:
    started = perf_counter()
    await service.check(upload)
    inputs = await service.executors.decode(upload, partial(_network_inputs, service, upload, variants))
    decoded = perf_counter()
    descriptors = await service.describe(inputs)
    described = perf_counter()
    look_up = partial(service.collection.search_descriptors, descriptors[None], k=k, max_false_match=max_false_match)
    (result,) = await service.executors.run("search", look_up)
    seconds = {"decode": decoded - started, "network": described - decoded, "search": perf_counter() - described}
    service.metrics.observe_stages(**seconds)
    timings = SearchTimings(**{stage: 1000 * spent for stage, spent in seconds.items()})
    return QueryResult.from_result(upload.name, result), timings


def _network_inputs(service: Service, upload: PhotoFile, variants: bool) -> Tensor:
    """Network inputs of a photo: (1, 3, S, S), or (5, 3, S, S) with its variants."""
    network_input = service.collection.extractor.resize(upload.photo().pixels())
    return torch.stack(query_variants(network_input) if variants else [network_input])


def _total(timings: Sequence[SearchTimings]) -> SearchTimings:
    return SearchTimings(
        decode=sum(each.decode for each in timings),
        network=sum(each.network for each in timings),
        search=sum(each.search for each in timings),
    )


class _ComparedPhoto(NamedTuple):
    """What a comparison needs of a photo; full-size pixels are decoded again when needed, to save memory."""

    file: PhotoFile
    shape: torch.Size
    network_input: Tensor
    picture: Image.Image


@router.post(
    "/v1/compare",
    summary="Compare two photos",
    responses=problem_responses(400, 408, 413, 415),
    openapi_extra=multipart_body(TWO_PHOTOS),
)
async def compare(request: Request, _: Searcher, service: ServiceDep, reservation: UploadSlot) -> Comparison:
    """Distance and false-match probability of two photos and, if they can be aligned, an overlay of the two."""
    form = await read_form(request, service.limits, reservation)
    files = form.photo("first"), form.photo("second")
    first, second = [await _decode(service, file) for file in files]
    descriptors = await service.describe(torch.stack([first.network_input, second.network_input]))
    distance = float(torch.dist(descriptors[0], descriptors[1]))
    # As if the second photo were the only reference.
    pairs = service.collection.codebook.null_distribution
    false_match_probability = float(pairs.descriptor.false_match_probability(np.array([distance]), 1)[0])
    quality, pictures = await service.executors.run(
        "report", partial(_compare_pixels, first, second), photo=first.file.name
    )
    return Comparison(
        same_size=quality is not None,
        quality=quality,
        distance=distance,
        false_match_probability=false_match_probability,
        false_match_text=format_probability(false_match_probability),
        aligned="overlay" in pictures,
        pictures=pictures,
    )


async def _decode(service: Service, file: PhotoFile) -> _ComparedPhoto:
    def decode() -> _ComparedPhoto:
        pixels = file.photo().pixels()
        return _ComparedPhoto(file, pixels.shape, service.collection.extractor.resize(pixels), make_thumbnail(pixels))

    await service.check(file)
    return await service.executors.decode(file, decode)


def _compare_pixels(first: _ComparedPhoto, second: _ComparedPhoto) -> tuple[Quality | None, dict[str, str]]:
    """The quality, if both photos have the same size, and pictures as data URLs."""
    quality = None
    if first.shape == second.shape:
        quality = Quality.measured(measure(first.file.photo().pixels(), second.file.photo().pixels()))
    overlay = overlay_photo(first.picture, second.picture)
    pictures = {"first": first.picture, "second": second.picture, **(vars(overlay) if overlay else {})}
    return quality, {name: embed(picture) for name, picture in pictures.items()}
