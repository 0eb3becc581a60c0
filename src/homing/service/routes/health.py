"""Whether the service lives and is ready, and what it holds."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from homing import __version__
from homing.activation import RECIPES
from homing.service.access import Admin, Searcher
from homing.service.answers import Health, Info
from homing.service.problems import ProblemError, responses
from homing.service.state import Here

router = APIRouter()


@router.get("/healthz", summary="Whether the process lives")
async def healthz() -> Health:
    """It does, if this is answered."""
    return Health()


@router.get("/readyz", summary="Whether requests are answered", responses={503: responses(503)[503]})
async def readyz(service: Here) -> Health:
    """They are; 503 while the service stops. Before it is ready it does not listen."""
    if not service.ready:
        raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "the service stops")
    return Health()


@router.get(
    "/metrics",
    summary="Figures for Prometheus",
    response_class=Response,
    responses={**responses(), 200: {"content": {"text/plain": {}}, "description": "In Prometheus's own format."}},
)
async def metrics(_: Admin, service: Here) -> Response:
    """Requests, times by route and stage, what waits, sizes of batches, references."""
    return Response(await service.lanes.browse(service.metrics.text), media_type=CONTENT_TYPE_LATEST)


@router.get("/v1/info", summary="What the collection holds", responses=responses())
async def info(_: Searcher, service: Here) -> Info:
    """Counts by state, strangers, bytes on disk, codebook and recipes."""

    def look() -> Info:
        # By the connection that others look through all with, which no search waits for.
        counts, folder = service.browsing.counts(), service.collection.folder
        background = 0 if folder.background is None else len(folder.background)
        return Info(
            **counts,
            passive=counts["photos"] - counts["activated"] - counts["unchanged"],
            references=counts["photos"] + background,
            background=background,
            bytes_on_disk=service.bytes_on_disk(),
            codebook=folder.codebook.name,
            extractor=folder.codebook.extractor,
            recipes=list(RECIPES),
            version=__version__,
        )

    return await service.lanes.browse(look)
