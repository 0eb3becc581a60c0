"""The machines that do the work: this one, or those of a Ray cluster."""

from __future__ import annotations

import logging
import math
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homing._extras import load_extra
from homing.errors import HomingError

CORES_PER_TASK = {"io": 0.25, "cpu": 0.5}  # of a core, that tasks take beside GPUs: to wait for files is no work
_CORES_PER_WORKER = 0.75  # of a core, that a worker takes at most beside a GPU: tasks have room

_PORTS = range(1 << 16)


@dataclass(frozen=True)
class Workers:
    """Processes that hold the network, and what each takes of a machine."""

    count: int
    cpus: float
    gpus: float

    @property
    def device(self) -> str | None:
        """Of the network."""
        return None if self.gpus else "cpu"


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Where a job runs: on this machine, or at the address of a Ray cluster; `auto` is the one this machine is in.

    By default all its GPUs are used, with one worker for each, or one for each core where there are none.
    """

    address: str | None = None
    workers: int | None = None
    gpus: int | None = None

    @contextmanager
    def start(self) -> Iterator[Workers]:
        """Start Ray on this machine, or join the cluster, for as long as a job takes; one that runs here is used."""
        # What Ray says by itself is for its developers; it reports home only where somebody asked it to.
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray = load_extra("ray", "ray")
        load_extra("ray.data", "ray")
        if ray.is_initialized():
            yield self._workers(ray)
            return
        only_here = {} if self.address else {"include_dashboard": False}
        try:
            _check_address(self.address)
            with _mute_stderr():
                ray.init(self.address or "local", logging_level=logging.ERROR, log_to_driver=False, **only_here)
        except (OSError, ValueError, RuntimeError) as error:
            raise HomingError(
                f"no Ray cluster lets us in at {self.address or 'this machine'}: {str(error).splitlines()[0]}; "
                "see that it runs, and that RAY_AUTH_TOKEN is set where it asks for one"
            ) from error
        try:
            yield self._workers(ray)
        finally:
            ray.shutdown()

    def _workers(self, ray: Any) -> Workers:
        there = ray.cluster_resources()
        cpus, most = there.get("CPU", 0.0), int(there.get("GPU", 0))
        gpus = most if self.gpus is None else self.gpus
        if gpus > most:
            raise HomingError(f"{gpus} GPUs were asked for, there are {most}")
        count = self.workers or gpus or max(1, int(cpus))
        if count < gpus:
            raise HomingError(f"each GPU needs a worker: got {count} for {gpus}; ask for more, or for fewer GPUs")
        if cpus < 1:
            raise HomingError(f"a core is needed at least, there are {cpus:g}")
        most_each = min(_CORES_PER_WORKER, (cpus - CORES_PER_TASK["cpu"]) / count) if gpus else min(1.0, cpus / count)
        return Workers(count, math.floor(10_000 * most_each) / 10_000, gpus / count)  # Ray would round up


def _check_address(address: str | None) -> None:
    """Whether anybody listens at HOST:PORT: Ray would try for minutes. OSError or ValueError if nobody does."""
    host, _, port = (address or "").rpartition(":")
    if port.isdecimal():
        if int(port) not in _PORTS:
            raise ValueError(f"a port is a number up to {_PORTS[-1]}, got {port}")
        socket.create_connection((host, int(port)), timeout=10).close()


@contextmanager
def _mute_stderr() -> Iterator[None]:
    """Keep off the screen what a library in C++ writes there on its own; what goes wrong is raised."""
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
