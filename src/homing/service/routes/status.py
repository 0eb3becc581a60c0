"""The page, health, metrics, the contents of the collection, and the progress of jobs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from homing import __version__
from homing.activation import RECIPES
from homing.service.auth import Admin, Contributor, Searcher
from homing.service.responses import etag_response, problem_responses
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


_PAGE_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True)
class _PageFile:
    data: bytes
    media_type: str
    tag: str


@cache
def _page_files() -> dict[str, _PageFile]:
    """Files of the page by name, read once; only known types are served."""
    found = {}
    for file in files("homing.service").joinpath("page").iterdir():
        kind = file.name.rpartition(".")[2]
        if file.is_file() and kind in _PAGE_TYPES:
            data = file.read_bytes()
            found[file.name] = _PageFile(data, _PAGE_TYPES[kind], hashlib.sha256(data).hexdigest()[:32])
    return found


@router.get("/", include_in_schema=False)
@router.get("/page/{name}", include_in_schema=False)
async def page(request: Request, name: str = "index.html") -> Response:
    """A file of the page; browsers revalidate it with its ETag."""
    file = _page_files().get(name)
    if file is None:
        raise HTTPException(HTTPStatus.NOT_FOUND, f"the page has no file {name!r}")

    async def data() -> bytes:
        return file.data

    return await etag_response(request, file.tag, file.media_type, data, cache_control="no-cache")
