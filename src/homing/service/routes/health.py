"""Whether the service lives and is ready, and what it holds."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from homing import __version__
from homing.activation import RECIPES
from homing.service.auth import Admin, Searcher
from homing.service.problems import ProblemError, problem_responses
from homing.service.schemas import Health, ServiceInfo
from homing.service.state import ServiceDep

router = APIRouter()


@router.get("/healthz", summary="Whether the process lives")
async def healthz() -> Health:
    """It does, if this is answered."""
    return Health()


@router.get("/readyz", summary="Whether requests are answered", responses={503: problem_responses(503)[503]})
async def readyz(service: ServiceDep) -> Health:
    """They are; 503 while the service stops. Before it is ready it does not listen."""
    if not service.ready:
        raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "the service stops")
    return Health()


@router.get(
    "/metrics",
    summary="Figures for Prometheus",
    response_class=Response,
    responses={
        **problem_responses(),
        200: {"content": {"text/plain": {}}, "description": "In Prometheus's own format."},
    },
)
async def metrics(_: Admin, service: ServiceDep) -> Response:
    """Requests, times by route and stage, what waits, sizes of batches, references."""
    return Response(await service.executors.browse(service.metrics.text), media_type=CONTENT_TYPE_LATEST)


@router.get("/v1/info", summary="What the collection holds", responses=problem_responses())
async def info(_: Searcher, service: ServiceDep) -> ServiceInfo:
    """Counts by state, distractors, bytes on disk, codebook and recipes."""

    def read_info() -> ServiceInfo:
        # By the connection that others look through all with, which no search waits for.
        counts, folder = service.scan_listing.counts(), service.collection.folder
        distractors = 0 if folder.distractors is None else len(folder.distractors)
        return ServiceInfo(
            **counts,
            passive=counts["photos"] - counts["activated"] - counts["unchanged"],
            references=counts["photos"] + distractors,
            distractors=distractors,
            bytes_on_disk=service.bytes_on_disk(),
            codebook=folder.codebook.name,
            extractor=folder.codebook.extractor,
            recipes=list(RECIPES),
            version=__version__,
        )

    return await service.executors.browse(read_info)
