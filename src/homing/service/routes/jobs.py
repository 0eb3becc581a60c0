"""Jobs: how one is started, and GET /v1/jobs/{id}: how far it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Response

from homing.service.access import Contributor
from homing.service.adding import examined
from homing.service.answers import JobStarted, Outcome, Progress
from homing.service.jobs import Job
from homing.service.limits import Held
from homing.service.problems import responses
from homing.service.state import Here, Service
from homing.service.uploads import Upload

router = APIRouter()


async def start_job(
    service: Service,
    job: Job,
    uploads: Sequence[Upload],
    do: Callable[[list[Upload]], list[Outcome]],
    held: Held,
    response: Response,
    *,
    together: int = 1,
) -> JobStarted:
    """Answer with the address of a job that does so many uploads together; those that are no photos are told of."""
    good, bad = await examined(service, uploads, alone=False)
    job.outcomes.extend(bad.values())
    steps = [partial(do, good[start : start + together]) for start in range(0, len(good), together)]
    service.start_job(job, steps, held)
    response.status_code, response.headers["Location"] = HTTPStatus.ACCEPTED, job.address
    return JobStarted(job=job.address)


@router.get("/v1/jobs/{id}", summary="How far a job is", responses=responses(404))
async def job(_: Contributor, service: Here, id: Annotated[str, Path(max_length=40)]) -> Progress:
    """Its state, how many photos of how many are done, and what came of each."""
    found = service.jobs.find(id)
    state, outcomes = found.state, list(found.outcomes)  # in this order: of a job that is done all is told
    return Progress(id=found.id, kind=found.kind, state=state, done=len(outcomes), total=found.total, outcomes=outcomes)
