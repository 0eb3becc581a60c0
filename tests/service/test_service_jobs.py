"""Jobs, the audit log and the metrics."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.collection.tiny import tiny_photos
from tests.service.conftest import Server, StartInProcess, blocked, wait_for_job, wait_until

from homing.errors import NotFoundError
from homing.service.records import Job, Jobs
from homing.service.schemas import PhotoOutcome


def test_a_job_adds_all_photos_and_reports_each(own_server: Server, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "many", 40)
    answer = own_server.post("/v1/photos?job=true", *photos, ("notes.txt", b"no photo"))
    assert answer.status_code == 202 and answer.headers["location"] == answer.json()["job"]
    job = wait_for_job(own_server.client, answer.json()["job"])
    assert job["state"] == "done" and job["kind"] == "add" and job["total"] == 41
    states = {each["photo"]: each["state"] for each in job["outcomes"]}
    assert states.pop("notes.txt") == "failed"
    assert states == {photo.name: "added" for photo in photos}
    assert own_server.client.get("/v1/photos").json()["total"] == 43


def test_other_changes_run_between_the_steps_of_a_job(
    start_in_process: StartInProcess, photos: Path, tmp_path: Path
) -> None:
    client, service = start_in_process()
    several = [("photo", (name, (photos / name).read_bytes())) for name in ("rocket.jpg", "flower.jpg")]
    (one,) = tiny_photos(tmp_path / "one", 1)
    with ThreadPoolExecutor(1) as pool:
        with blocked(service.writer):
            answer = client.post("/v1/activate?job=true", files=several, data={"recipe": "homing-fast"})
            assert answer.status_code == 202
            added = pool.submit(client.post, "/v1/photos", files={"photo": (one.name, one.read_bytes())})
            wait_until(lambda: service.writer.waiting == 2)
            assert client.get(answer.json()["job"]).json()["state"] == "waiting"
        assert added.result().status_code == 201
    job = wait_for_job(client, answer.json()["job"])
    assert [each["state"] for each in job["outcomes"]] == ["activated"] * 2
    for each in job["outcomes"]:
        assert client.get(f"/v1/photos/{each['id']}/released").status_code == 200
    log = [json.loads(line) for line in service.audit.path.read_text().splitlines()]
    assert [(each["action"], each["photo"]) for each in log] == [
        ("released", "rocket.jpg"),
        ("added", one.name),
        ("released", "flower.jpg"),
    ]


def test_the_audit_log_records_who_did_what(own_server: Server, tmp_path: Path, photos: Path) -> None:
    (first, second) = tiny_photos(tmp_path / "two", 2)
    (outcome,) = own_server.post("/v1/photos", ("Föhr.png", first.read_bytes())).json()["outcomes"]
    own_server.post("/v1/photos", ("again.png", first.read_bytes()))
    released = own_server.post("/v1/activate", second, data={"recipe": "homing-fast"})
    own_server.client.delete(f"/v1/photos/{outcome['id']}")
    own_server.post("/v1/search", photos / "camera.png")
    log = own_server.folder / "audit.jsonl"
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    number = int(released.headers["x-homing-id"])
    assert [(each["action"], each["photo"], each["id"]) for each in entries] == [
        ("added", "Föhr.png", outcome["id"]),
        ("added", second.name, number),
        ("released", second.name, number),
        ("removed", "Föhr.png", outcome["id"]),
    ]
    assert all(set(each) == {"time", "key", "action", "id", "sha256", "photo"} for each in entries)
    assert {each["key"] for each in entries} == {"local"}
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_metrics_count_requests_stages_batches_and_references(own_server: Server, photos: Path) -> None:
    for _ in range(3):
        own_server.post("/v1/search", photos / "camera.png")
    own_server.client.get("/nowhere")
    own_server.client.request("BREW", "/v1/search")  # unknown methods are counted as one
    text = own_server.client.get("/metrics").text
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    labels = ("homing_requests_total", ("method", "POST"), ("route", "/v1/search"), ("status", "200"))
    assert samples[labels] == 3
    assert samples["homing_requests_total", ("method", "any"), ("route", "none"), ("status", "404")] == 1
    assert samples["homing_requests_total", ("method", "any"), ("route", "/v1/search"), ("status", "405")] == 1
    for stage in ("decode", "network", "search"):
        assert samples["homing_stage_seconds_count", ("stage", stage)] == 3
        assert samples["homing_stage_seconds_sum", ("stage", stage)] > 0
    assert samples[("homing_batch_size_count",)] == 3
    assert samples[("homing_references",)] == 3
    assert samples["homing_queue_length", ("queue", "network")] == 0


def test_only_the_latest_jobs_are_stored() -> None:
    jobs = Jobs(capacity=2)
    first, second, third = (jobs.add(Job("add", 1)) for _ in range(3))
    assert jobs.find(second.id) is second and jobs.find(third.id) is third
    with pytest.raises(NotFoundError, match="no job has the id"):
        jobs.find(first.id)


@pytest.mark.slow
def test_job_states() -> None:
    job, states = Job("add", 2), []

    def step() -> list[PhotoOutcome]:
        states.append(job.state)
        return [PhotoOutcome(photo="a.jpg", id=1, state="added")]

    assert job.state == "waiting"
    job.run_step(step)
    assert (states, job.state, len(job.outcomes)) == (["running"], "running", 1)
    job.run_step(step)
    job.finish()
    assert job.state == "done" and len(job.outcomes) == 2
