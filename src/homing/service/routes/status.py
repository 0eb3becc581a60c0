"""Health, metrics, the contents of the collection, and the progress of jobs."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Response
from prometheus_client import CONTENT_TYPE_LATEST

from homing import __version__
from homing.activation import RECIPES
from homing.service.auth import Admin, Contributor, Searcher
from homing.service.responses import problem_responses
from homing.service.schemas import Health, JobStatus, ServiceInfo
from homing.service.state import ServiceDep

router = APIRouter()


@router.get("/healthz", summary="Liveness")
async def healthz() -> Health:
    """Always 200 while the process runs."""
    return Health()


@router.get("/readyz", summary="Readiness", responses={503: problem_responses(503)[503]})
async def readyz(service: ServiceDep) -> Health:
    """200 once requests are accepted; 503 while the service shuts down. Before it is ready it does not listen."""
    if not service.ready:
        raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "the service is shutting down")
    return Health()


@router.get(
    "/metrics",
    summary="Prometheus metrics",
    response_class=Response,
    responses={**problem_responses(), 200: {"content": {"text/plain": {}}, "description": "Prometheus text format."}},
)
async def metrics(_: Admin, service: ServiceDep) -> Response:
    """Requests and latencies by route and stage, queue lengths, batch sizes and references."""
    return Response(await service.executors.run("browse", service.metrics.text), media_type=CONTENT_TYPE_LATEST)


@router.get("/v1/info", summary="Contents of the collection", responses=problem_responses())
async def info(_: Searcher, service: ServiceDep) -> ServiceInfo:
    """Counts by state, distractors, bytes on disk, codebook and recipes."""

    def read_info() -> ServiceInfo:
        # On the connection for scans, which no search waits for.
        counts, collection = service.scan_listing.counts(), service.collection
        distractors = 0 if collection.distractors is None else len(collection.distractors)
        return ServiceInfo(
            **counts,
            passive=counts["photos"] - counts["activated"] - counts["unchanged"],
            references=counts["photos"] + distractors,
            distractors=distractors,
            bytes_on_disk=service.bytes_on_disk(),
            codebook=collection.codebook.name,
            extractor=collection.codebook.extractor,
            recipes=list(RECIPES),
            version=__version__,
        )

    return await service.executors.run("browse", read_info)


@router.get("/v1/jobs/{id}", summary="Progress of a job", responses=problem_responses(404))
async def job(_: Contributor, service: ServiceDep, id: Annotated[str, Path(max_length=40)]) -> JobStatus:
    """State, number of finished photos, and the outcome of each."""
    found = service.jobs.find(id)
    state, outcomes = found.state, list(found.outcomes)  # in this order: a job that is done has all its outcomes
    return JobStatus.of(found, state=state, done=len(outcomes), outcomes=outcomes)
