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
from homing.collection.turning import turns
from homing.errors import HomingError
from homing.photo import Photo
from homing.service.access import Searcher
from homing.service.answers import Found, FoundEach, FoundOf, Match, Milliseconds, NotSearched
from homing.service.bodies import PHOTOS, takes
from homing.service.problems import ProblemError, details, problem_of, responses
from homing.service.state import Here, Room, Service
from homing.service.uploads import Upload, examine, read_form

router = APIRouter()
_SIDE_BY_SIDE = 8  # photos of one request that are on their way at once: others want their turn

Matches = Annotated[int, Query(ge=1, le=1000, description="How many matches.")]
Chance = Annotated[
    float | None, Query(gt=0, le=1, description="Leave out what an unrelated photo finds by a larger chance.")
]
Turned = Annotated[bool, Query(description="Search for its quarter turns and its mirror image as well.")]


@dataclass(frozen=True)
class _Wanted:
    k: int
    false_matches: float | None
    turned: bool


@dataclass(frozen=True)
class _Answer:
    matches: list[library.Match]
    plan: str
    decode: float
    network: float
    search: float


@router.post(
    "/v1/search",
    summary="Which references photos are copies of",
    responses=responses(400, 408, 413, 415),
    openapi_extra=takes(PHOTOS),
)
async def search(
    request: Request,
    _: Searcher,
    service: Here,
    held: Room,
    k: Matches = 10,
    false_matches: Chance = None,
    turned: Turned = False,
) -> Found | FoundEach:
    """The nearest references of a photo, the least likely by chance first; of several those of each."""
    uploads = (await read_form(request, service.limits, held)).photos()
    wanted = _Wanted(k, false_matches, turned)
    if len(uploads) == 1:
        answer = await _find(service, uploads[0], wanted)
        return Found(matches=_matches(answer), plan=answer.plan, milliseconds=_spent([answer]))
    few = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def each(upload: Upload) -> _Answer | ProblemError:
        async with few:
            try:
                return await _find(service, upload, wanted)
            except (ProblemError, HomingError) as error:
                return problem_of(error)

    found = await asyncio.gather(*(each(upload) for upload in uploads))
    plan = await service.lanes.search(lambda: str(service.collection.plan(k)))
    results = [
        FoundOf(name=upload.name, matches=_matches(answer))
        if isinstance(answer, _Answer)
        else NotSearched(name=upload.name, problem=details(request, answer))
        for upload, answer in zip(uploads, found, strict=True)
    ]
    answers = [answer for answer in found if isinstance(answer, _Answer)]
    return FoundEach(results=results, plan=plan, milliseconds=_spent(answers))


async def _find(service: Service, upload: Upload, wanted: _Wanted) -> _Answer:
    started = perf_counter()
    squares = await _squares_of(service, upload, turned=wanted.turned)
    decoded = perf_counter()
    descriptors = await asyncio.wrap_future(service.batcher.submit(squares))
    described = perf_counter()
    matches, plan = await service.lanes.search(partial(_look_up, service, descriptors, wanted))
    answer = _Answer(matches, plan, decoded - started, described - decoded, perf_counter() - described)
    service.metrics.saw_stages(decode=answer.decode, network=answer.network, search=answer.search)
    return answer


def _look_up(service: Service, descriptors: Tensor, wanted: _Wanted) -> tuple[list[library.Match], str]:
    """The matches of one photo, and how they were looked for."""
    (matches,) = service.collection.search_descriptors(
        descriptors[None], k=wanted.k, false_matches=wanted.false_matches
    )
    return matches, str(service.collection.plan(wanted.k))


async def _squares_of(service: Service, upload: Upload, *, turned: bool = False) -> Tensor:
    """What the network sees of a photo, (1, 3, S, S), or of its five turns."""
    pixels = await service.lanes.look(partial(examine, upload, service.limits))
    return await service.lanes.decode(upload.name, pixels, partial(_squares, service, upload, turned))


def _squares(service: Service, upload: Upload, turned: bool) -> Tensor:
    square = service.collection.extractor.resize(Photo.decode(upload.data, upload.name).view())
    return torch.stack(turns(square) if turned else [square])


def _matches(answer: _Answer) -> list[Match]:
    return [Match.of(match) for match in answer.matches]


def _spent(answers: list[_Answer]) -> Milliseconds:
    return Milliseconds(
        decode=1000 * sum(each.decode for each in answers),
        network=1000 * sum(each.network for each in answers),
        search=1000 * sum(each.search for each in answers),
    )
