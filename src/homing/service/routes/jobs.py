"""GET /v1/jobs/{id}: how far a job is."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from homing.service.access import Contributor
from homing.service.answers import Progress
from homing.service.problems import responses
from homing.service.state import Here

router = APIRouter()


@router.get("/v1/jobs/{id}", summary="How far a job is", responses=responses(404))
async def job(_: Contributor, service: Here, id: Annotated[str, Path(max_length=40)]) -> Progress:
    """Its state, how many photos of how many are done, and what came of each."""
    found = service.jobs.find(id)
    outcomes = list(found.outcomes)
    return Progress(
        id=found.id, kind=found.kind, state=found.state, done=len(outcomes), total=found.total, outcomes=outcomes
    )
