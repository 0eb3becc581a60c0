"""Health, metrics and the contents of the collection."""

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


@router.get("/healthz", summary="Liveness")
async def healthz() -> Health:
    """Always 200 while the process runs."""
    return Health()


@router.get("/readyz", summary="Readiness", responses={503: problem_responses(503)[503]})
async def readyz(service: ServiceDep) -> Health:
    """200 once requests are accepted; 503 while the service shuts down. Before it is ready it does not listen."""
    if not service.ready:
        raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "the service is shutting down")
    return Health()


@router.get(
    "/metrics",
    summary="Prometheus metrics",
    response_class=Response,
    responses={
        **problem_responses(),
        200: {"content": {"text/plain": {}}, "description": "Prometheus text format."},
    },
)
async def metrics(_: Admin, service: ServiceDep) -> Response:
    """Requests and latencies by route and stage, queue lengths, batch sizes and references."""
    return Response(await service.executors.browse(service.metrics.text), media_type=CONTENT_TYPE_LATEST)


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

    return await service.executors.browse(read_info)
