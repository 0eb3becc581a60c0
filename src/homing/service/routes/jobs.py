"""GET /v1/jobs/{id}: progress of a job; and the function that starts one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Response

from homing.service.add import check_uploads
from homing.service.auth import Contributor
from homing.service.jobs import Job
from homing.service.limits import Reservation
from homing.service.problems import problem_responses
from homing.service.schemas import JobStarted, JobStatus, PhotoOutcome
from homing.service.state import Service, ServiceDep
from homing.service.uploads import Upload

router = APIRouter()


async def start_job(
    service: Service,
    job: Job,
    uploads: Sequence[Upload],
    step: Callable[[list[Upload]], list[PhotoOutcome]],
    reservation: Reservation,
    response: Response,
    *,
    batch_size: int = 1,
) -> JobStarted:
    """Start a job that processes uploads in batches, and answer with its address. Invalid uploads fail at once."""
    good, bad = await check_uploads(service, uploads, alone=False)
    job.outcomes.extend(bad.values())
    steps = [partial(step, good[start : start + batch_size]) for start in range(0, len(good), batch_size)]
    service.start_job(job, steps, reservation)
    response.status_code, response.headers["Location"] = HTTPStatus.ACCEPTED, job.address
    return JobStarted(job=job.address)


@router.get("/v1/jobs/{id}", summary="Progress of a job", responses=problem_responses(404))
async def job(_: Contributor, service: ServiceDep, id: Annotated[str, Path(max_length=40)]) -> JobStatus:
    """State, number of finished photos, and the outcome of each."""
    found = service.jobs.find(id)
    state, outcomes = found.state, list(found.outcomes)  # in this order: a job that is done has all its outcomes
    return JobStatus(
        id=found.id, kind=found.kind, state=state, done=len(outcomes), total=found.total, outcomes=outcomes
    )
