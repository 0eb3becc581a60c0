"""POST /v1/search: find the references that a photo is a copy of."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Annotated

import torch
from fastapi import APIRouter, Query, Request
from torch import Tensor

from homing import collection as library
from homing.collection.query_variants import query_variants
from homing.errors import HomingError
from homing.photo import Photo
from homing.service.auth import Searcher
from homing.service.openapi import PHOTOS, multipart_body
from homing.service.problems import ProblemError, problem_details, problem_responses, to_problem
from homing.service.schemas import BatchSearchResponse, QueryProblem, QueryResult, SearchResponse, SearchTimings
from homing.service.state import Service, ServiceDep, UploadSlot
from homing.service.uploads import Upload, check_upload, read_form

router = APIRouter()
_MAX_CONCURRENT = 8  # photos of one request that are processed at once, so that other requests get their turn

MatchCount = Annotated[int, Query(ge=1, le=1000, description="Maximum number of matches.")]
MaxFalseMatch = Annotated[
    float | None, Query(gt=0, le=1, description="Omit matches with a larger false-match probability.")
]
Variants = Annotated[bool, Query(description="Also search for the quarter turns and the mirror image of the photo.")]


@dataclass(frozen=True)
class _SearchOptions:
    k: int
    max_false_match: float | None
    variants: bool


@dataclass(frozen=True)
class _TimedResult:
    """The result of one query, and the seconds that each stage took."""

    result: library.SearchResult
    decode: float
    network: float
    search: float


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
    options = _SearchOptions(k, max_false_match, variants)
    if len(uploads) == 1:
        timed = await _search_photo(service, uploads[0], options)
        result = QueryResult.from_result(uploads[0].name, timed.result)
        return SearchResponse(**vars(result), milliseconds=_timings([timed]))
    semaphore = asyncio.Semaphore(_MAX_CONCURRENT)

    async def search_or_fail(upload: Upload) -> _TimedResult | ProblemError:
        async with semaphore:
            try:
                return await _search_photo(service, upload, options)
            except (ProblemError, HomingError) as error:
                return to_problem(error)

    found = await asyncio.gather(*(search_or_fail(upload) for upload in uploads))
    results = [
        QueryResult.from_result(upload.name, each.result)
        if isinstance(each, _TimedResult)
        else QueryProblem(query=upload.name, problem=problem_details(request, each))
        for upload, each in zip(uploads, found, strict=True)
    ]
    succeeded = [each for each in found if isinstance(each, _TimedResult)]
    return BatchSearchResponse(results=results, milliseconds=_timings(succeeded))


async def _search_photo(service: Service, upload: Upload, options: _SearchOptions) -> _TimedResult:
    started = perf_counter()
    inputs = await _load_inputs(service, upload, variants=options.variants)
    decoded = perf_counter()
    descriptors = await asyncio.wrap_future(service.batcher.submit(inputs))
    described = perf_counter()
    result = await service.executors.search(partial(_look_up, service, descriptors, options))
    timed = _TimedResult(result, decoded - started, described - decoded, perf_counter() - described)
    service.metrics.observe_stages(decode=timed.decode, network=timed.network, search=timed.search)
    return timed


def _look_up(service: Service, descriptors: Tensor, options: _SearchOptions) -> library.SearchResult:
    """Search for (T, D) descriptors of one photo."""
    (result,) = service.collection.search_descriptors(
        descriptors[None], k=options.k, max_false_match=options.max_false_match
    )
    return result


async def _load_inputs(service: Service, upload: Upload, *, variants: bool = False) -> Tensor:
    """Network inputs of a photo: (1, 3, S, S), or (5, 3, S, S) with its variants."""
    pixel_count = await service.executors.lookup(partial(check_upload, upload, service.limits))
    return await service.executors.decode(upload.name, pixel_count, partial(_to_inputs, service, upload, variants))


def _to_inputs(service: Service, upload: Upload, variants: bool) -> Tensor:
    network_input = service.collection.extractor.resize(Photo.decode(upload.data, upload.name).pixels())
    return torch.stack(query_variants(network_input) if variants else [network_input])


def _timings(succeeded: list[_TimedResult]) -> SearchTimings:
    return SearchTimings(
        decode=1000 * sum(each.decode for each in succeeded),
        network=1000 * sum(each.network for each in succeeded),
        search=1000 * sum(each.search for each in succeeded),
    )
