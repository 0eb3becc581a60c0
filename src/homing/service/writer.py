"""All changes to the collection: one thread makes them in order, jobs in steps; the audit log records them."""

from __future__ import annotations

import json
import logging
import os
import secrets
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Literal, TypeVar

from homing._io.files import fsync_folder
from homing._io.paths import Address, Location
from homing.errors import CollectionError, NotFoundError
from homing.service.problems import TooBusyError
from homing.service.schemas import PhotoOutcome

Result = TypeVar("Result")

MAX_JOBS = 1000


class Writer:
    """A thread that makes changes to the collection. Accepted changes are always made."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: deque[tuple[deque[Callable[[], Any]], Future[Any]]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="writer")
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of waiting changes and jobs."""
        return len(self._waiting)

    def submit(self, change: Callable[[], Result]) -> Future[Result]:
        """Queue a change; returns a future of its result."""
        return self._accept([change])

    def submit_steps(self, steps: Iterable[Callable[[], None]]) -> Future[None]:
        """Queue a job of several steps; other waiting changes run between them."""
        return self._accept(steps)

    def _accept(self, steps: Iterable[Callable[[], Any]]) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # it can no longer be canceled
        with self._changed:
            if self.waiting >= self._capacity or self._closed:
                raise TooBusyError(f"the write queue is full ({self.waiting} changes wait); try again")
            self._waiting.append((deque(steps), future))
            self._changed.notify()
        return future

    def close(self) -> None:
        """Make the accepted changes, then stop."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                steps, future = self._waiting.popleft()
            try:
                result = steps.popleft()()
            except Exception as error:  # noqa: BLE001
                # Any error goes to the caller; the other changes continue.
                future.set_exception(error)
                continue
            if not steps:
                future.set_result(result)
                continue
            with self._changed:
                self._waiting.append((steps, future))


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
