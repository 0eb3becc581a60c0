"""What the service records: the progress of jobs, the audit log of changes, and metrics."""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from http import HTTPStatus
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import Scope

from homing._io.files import fsync_folder
from homing._io.paths import Address, Location
from homing.errors import CollectionError, NotFoundError
from homing.service.schemas import PhotoOutcome

MAX_JOBS = 1000
_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)


@dataclass
class Job:
    """Progress of one job, updated by the writer's thread; the state changes after the outcomes."""

    kind: Literal["add", "activate"]
    total: int
    outcomes: list[PhotoOutcome] = field(default_factory=list)
    state: Literal["waiting", "running", "done", "failed"] = "waiting"
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))

    @property
    def address(self) -> str:
        """Address that reports its progress."""
        return f"/v1/jobs/{self.id}"

    def run_step(self, step: Callable[[], Iterable[PhotoOutcome]]) -> None:
        """Process some of its photos."""
        self.state = "running"
        self.outcomes.extend(step())

    def finish(self, error: BaseException | None = None) -> None:
        """Mark the job as done, or as failed by an unexpected error."""
        self.state = "done" if error is None else "failed"
        if error is not None:
            logging.getLogger("homing").error("job %s failed", self.id, exc_info=error)


class Jobs:
    """The latest jobs. Older ones are dropped; their results stay in the collection."""

    def __init__(self, capacity: int = MAX_JOBS) -> None:
        self._capacity = capacity
        self._jobs: dict[str, Job] = {}

    def add(self, job: Job) -> Job:
        """Register a job."""
        self._jobs[job.id] = job
        if len(self._jobs) > self._capacity:
            del self._jobs[next(iter(self._jobs))]
        return job

    def find(self, number: str) -> Job:
        """The job with this id. Raises NotFoundError if there is none."""
        if number not in self._jobs:
            raise NotFoundError(
                f"no job has the id {number!a}; only the last {self._capacity:,} jobs since the start are kept"
            )
        return self._jobs[number]


@dataclass(frozen=True)
class AuditEntry:
    """One action on one photo."""

    key: str
    action: str
    id: int
    sha256: str
    photo: str


class AuditLog:
    """The audit log of a collection. Only the writer's thread writes to it."""

    def __init__(self, path: Location) -> None:
        """In a bucket, where no file can be appended to, `path` is a folder, and each write makes a file in it."""
        self.path = path

    def write(self, *entries: AuditEntry) -> None:
        """Append entries, and flush them to disk."""
        if not entries:
            return
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        lines = "".join(json.dumps({"time": now, **vars(entry)}, ensure_ascii=False) + "\n" for entry in entries)
        try:
            if isinstance(self.path, Address):
                (self.path / f"{now}-{secrets.token_hex(4)}.jsonl").write(lines.encode(), new=True)
                return
            new = not self.path.exists()
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(handle, "ab") as file:
                file.write(lines.encode())
                file.flush()
                os.fsync(handle)
            if new:
                fsync_folder(self.path.parent)
        except OSError as error:
            raise CollectionError(f"the audit log {self.path} cannot be written: {error.strerror}") from error


class Metrics:
    """Requests and latencies by route and stage, queue lengths, batch sizes and references."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "homing_requests", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "homing_request_seconds",
            "Seconds until the response starts.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._stages = Histogram(
            "homing_stage_seconds", "Seconds of a search, by stage.", ["stage"], buckets=_SECONDS, registry=registry
        )
        self.batch_sizes = Histogram(
            "homing_batch_size", "Network inputs per batch.", buckets=(1, 2, 4, 8, 16), registry=registry
        )

    def add_gauges(self, references: Callable[[], int], **queues: Callable[[], int]) -> None:
        """Add gauges that are evaluated on each scrape: references, and the length of each queue."""
        waiting = Gauge(
            "homing_queue_length", "Items that wait or are processed, by queue.", ["queue"], registry=self._registry
        )
        for name, count in queues.items():
            waiting.labels(name).set_function(count)
        Gauge("homing_references", "References in the catalog.", registry=self._registry).set_function(references)

    def observe_request(self, scope: Scope, status: int, seconds: float) -> None:
        """Record a response by route pattern; requests of unknown routes are recorded as one route, of any method."""
        route = getattr(scope.get("route"), "path", "none")
        known = route != "none" and status != HTTPStatus.METHOD_NOT_ALLOWED
        self._requests.labels(scope["method"] if known else "any", route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def observe_stages(self, **seconds: float) -> None:
        """Record the seconds of each stage of a search."""
        for stage, spent in seconds.items():
            self._stages.labels(stage).observe(spent)

    def text(self) -> bytes:
        """All metrics in Prometheus text format."""
        return generate_latest(self._registry)
