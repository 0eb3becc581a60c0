"""POST /v1/search: which references a photo is a copy of."""

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
from homing.service.schemas import BatchSearchResponse, Match, PhotoMatches, PhotoProblem, SearchResponse, SearchTimings
from homing.service.state import Service, ServiceDep, UploadSlot
from homing.service.uploads import Upload, check_upload, read_form

router = APIRouter()
_MAX_CONCURRENT = 8  # photos of one request that are on their way at once: others want their turn

MatchCount = Annotated[int, Query(ge=1, le=1000, description="How many matches.")]
MaxFalseMatch = Annotated[
    float | None, Query(gt=0, le=1, description="Leave out what an unrelated photo finds by a larger chance.")
]
Variants = Annotated[bool, Query(description="Search for its quarter turns and its mirror image as well.")]


@dataclass(frozen=True)
class _SearchOptions:
    k: int
    max_false_match: float | None
    variants: bool


@dataclass(frozen=True)
class _SearchResult:
    matches: list[library.Match]
    plan: str
    decode: float
    network: float
    search: float


@router.post(
    "/v1/search",
    summary="Which references photos are copies of",
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
    """The nearest references of a photo, the least likely by chance first; of several those of each."""
    uploads = (await read_form(request, service.limits, reservation)).photos()
    options = _SearchOptions(k, max_false_match, variants)
    if len(uploads) == 1:
        result = await _search_photo(service, uploads[0], options)
        return SearchResponse(matches=_to_schemas(result), plan=result.plan, milliseconds=_timings([result]))
    semaphore = asyncio.Semaphore(_MAX_CONCURRENT)

    async def each(upload: Upload) -> _SearchResult | ProblemError:
        async with semaphore:
            try:
                return await _search_photo(service, upload, options)
            except (ProblemError, HomingError) as error:
                return to_problem(error)

    found = await asyncio.gather(*(each(upload) for upload in uploads))
    plan = await service.executors.search(lambda: str(service.collection.plan_search(k)))
    results = [
        PhotoMatches(name=upload.name, matches=_to_schemas(result))
        if isinstance(result, _SearchResult)
        else PhotoProblem(name=upload.name, problem=problem_details(request, result))
        for upload, result in zip(uploads, found, strict=True)
    ]
    succeeded = [result for result in found if isinstance(result, _SearchResult)]
    return BatchSearchResponse(results=results, plan=plan, milliseconds=_timings(succeeded))


async def _search_photo(service: Service, upload: Upload, options: _SearchOptions) -> _SearchResult:
    started = perf_counter()
    inputs = await _load_inputs(service, upload, variants=options.variants)
    decoded = perf_counter()
    descriptors = await asyncio.wrap_future(service.batcher.submit(inputs))
    described = perf_counter()
    matches, plan = await service.executors.search(partial(_look_up, service, descriptors, options))
    result = _SearchResult(matches, plan, decoded - started, described - decoded, perf_counter() - described)
    service.metrics.observe_stages(decode=result.decode, network=result.network, search=result.search)
    return result


def _look_up(service: Service, descriptors: Tensor, options: _SearchOptions) -> tuple[list[library.Match], str]:
    """The matches of one photo, and how they were looked for."""
    (result,) = service.collection.search_descriptors(
        descriptors[None], k=options.k, max_false_match=options.max_false_match
    )
    return result.matches, str(result.search)


async def _load_inputs(service: Service, upload: Upload, *, variants: bool = False) -> Tensor:
    """What the network sees of a photo, (1, 3, S, S), or of its five turns."""
    pixel_count = await service.executors.lookup(partial(check_upload, upload, service.limits))
    return await service.executors.decode(upload.name, pixel_count, partial(_to_inputs, service, upload, variants))


def _to_inputs(service: Service, upload: Upload, variants: bool) -> Tensor:
    network_input = service.collection.extractor.resize(Photo.decode(upload.data, upload.name).pixels())
    return torch.stack(query_variants(network_input) if variants else [network_input])


def _to_schemas(result: _SearchResult) -> list[Match]:
    return [Match.from_match(match) for match in result.matches]


def _timings(succeeded: list[_SearchResult]) -> SearchTimings:
    return SearchTimings(
        decode=1000 * sum(each.decode for each in succeeded),
        network=1000 * sum(each.network for each in succeeded),
        search=1000 * sum(each.search for each in succeeded),
    )
