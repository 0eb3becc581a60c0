"""Background jobs: long work done in steps, with its progress in memory."""

from __future__ import annotations

import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from homing.errors import NotFoundError
from homing.service.schemas import PhotoOutcome

MAX_JOBS = 1000


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

    def run_step(self, step: Callable[[], list[PhotoOutcome]]) -> None:
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
        self._jobs: OrderedDict[str, Job] = OrderedDict()

    def add(self, job: Job) -> Job:
        """Register a job."""
        self._jobs[job.id] = job
        while len(self._jobs) > self._capacity:
            self._jobs.popitem(last=False)
        return job

    def find(self, number: str) -> Job:
        """The job with this id. Raises NotFoundError if there is none."""
        if number not in self._jobs:
            raise NotFoundError(
                f"no job has the id {number!a}; only the last {self._capacity:,} jobs since the start are kept"
            )
        return self._jobs[number]
