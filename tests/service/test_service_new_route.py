"""A route of another package, in one file: this one. CONTRIBUTING.md describes it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import pytest
from fastapi import APIRouter, Request
from tests.service.conftest import in_thread

from homing.extractors import Extractor
from homing.service import Keys, Limits
from homing.service.auth import Contributor
from homing.service.records import AuditEntry
from homing.service.responses import problem_responses
from homing.service.schemas import Schema
from homing.service.state import ServiceDep, UploadSlot
from homing.service.uploads import PHOTOS, multipart_body, read_form

router = APIRouter()
MAX_BYTES = 100_000


@dataclass(frozen=True, kw_only=True)
class Size(Schema):
    """The size of a photo."""

    width: int
    """In pixels."""
    height: int


@router.post(
    "/v1/size",
    summary="Measure a photo",
    responses=problem_responses(400, 408, 413, 415),
    openapi_extra=multipart_body(PHOTOS),
)
async def size(request: Request, caller: Contributor, service: ServiceDep, reservation: UploadSlot) -> Size:
    """Width and height."""
    upload = (await read_form(request, service.limits, reservation)).photo()
    await service.check(upload)
    entry = AuditEntry(caller.name, "measured", 0, upload.sha256, upload.name)
    await service.write(partial(service.audit.write, entry))
    return Size(**dict(zip(("width", "height"), upload.size, strict=True)))


@pytest.fixture
def client(
    template: Path, extractor: Extractor, tmp_path: Path, key_file: tuple[Path, dict[str, str]]
) -> Iterator[httpx.Client]:
    """A client of a service that has the route."""
    folder, keys = shutil.copytree(template, tmp_path / "c.homing"), Keys.read(key_file[0])
    with in_thread(folder, extractor, routers=[router], keys=keys, limits=Limits(bytes=MAX_BYTES)) as (client, _):
        yield client


def test_the_route_has_roles_limits_audit_metrics_and_a_description(
    client: httpx.Client, keys: dict[str, str], copy: Path, tmp_path: Path
) -> None:
    def ask(role: str, data: bytes = copy.read_bytes()) -> httpx.Response:
        headers = {"Authorization": f"Bearer {keys[role]}"} if role in keys else {}
        return client.post("/v1/size", files={"photo": ("copy.jpg", data)}, headers=headers)

    answer = ask("contribute")
    assert (answer.status_code, answer.json()) == (200, {"width": 320, "height": 214})
    assert answer.headers["x-content-type-options"] == "nosniff"
    refused = {"nobody": 401, "search": 403}
    assert {role: ask(role).status_code for role in refused} == refused
    assert ask("admin", bytes(MAX_BYTES + 1)).status_code == 413
    problem = ask("admin", b"no photo")
    assert problem.status_code == problem.json()["status"] == 415 and problem.json()["instance"] == "/v1/size"
    (entry,) = [json.loads(line) for line in (tmp_path / "c.homing" / "audit.jsonl").read_text().splitlines()]
    assert (entry["key"], entry["action"], entry["photo"]) == ("contribute-user", "measured", "copy.jpg")
    metrics = client.get("/metrics", headers={"Authorization": f"Bearer {keys['admin']}"}).text
    assert 'homing_requests_total{method="POST",route="/v1/size",status="200"} 1.0' in metrics
    document = client.get("/openapi.json").json()
    assert {"200", "401", "413", "415", "429"} <= set(document["paths"]["/v1/size"]["post"]["responses"])
    schema = document["components"]["schemas"]["Size"]
    assert schema["properties"]["width"]["description"] == "In pixels." and schema["additionalProperties"] is False
