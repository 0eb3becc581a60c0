"""Work that takes longer than a request should: done step by step, with its progress in memory."""

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
    """What is known of one job; the writer's thread fills it in. Its state changes after its outcomes do."""

    kind: Literal["add", "activate"]
    total: int
    outcomes: list[PhotoOutcome] = field(default_factory=list)
    state: Literal["waiting", "running", "done", "failed"] = "waiting"
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))

    @property
    def address(self) -> str:
        """Where its progress is told."""
        return f"/v1/jobs/{self.id}"

    def run_step(self, step: Callable[[], list[PhotoOutcome]]) -> None:
        """Do some of its photos."""
        self.state = "running"
        self.outcomes.extend(step())

    def finish(self, error: BaseException | None = None) -> None:
        """All are done, or a mistake of ours is in the way of those that are left."""
        self.state = "done" if error is None else "failed"
        if error is not None:
            logging.getLogger("homing").error("job %s broke", self.id, exc_info=error)


class Jobs:
    """The latest jobs. Those of before are forgotten, and what they did stays."""

    def __init__(self, capacity: int = MAX_JOBS) -> None:
        self._capacity = capacity
        self._jobs: OrderedDict[str, Job] = OrderedDict()

    def add(self, job: Job) -> Job:
        """Remember a job."""
        self._jobs[job.id] = job
        while len(self._jobs) > self._capacity:
            self._jobs.popitem(last=False)
        return job

    def find(self, number: str) -> Job:
        """A job by its id; NotFoundError if there is none."""
        if number not in self._jobs:
            raise NotFoundError(f"no job has the id {number!a}; the last {self._capacity:,} since the start are known")
        return self._jobs[number]
