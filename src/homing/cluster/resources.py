"""Resources of a job: this machine, or a Ray cluster."""

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

from homing._imports import load_extra
from homing.errors import HomingError

CORES_PER_TASK = {"io": 0.25, "cpu": 0.5}  # cores per task on machines with GPUs; waiting for files needs little
_CORES_PER_WORKER = 0.75  # maximum cores per GPU worker, which leaves some for tasks

_PORTS = range(1 << 16)


@dataclass(frozen=True)
class Workers:
    """Number of worker processes, and the cores and GPUs of each."""

    count: int
    cpus: float
    gpus: float

    @property
    def device(self) -> str | None:
        """Device of the network: None for the default GPU, or cpu."""
        return None if self.gpus else "cpu"


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Where a job runs: on this machine, or on the Ray cluster at `address` (`auto`: the one of this machine).

    By default it uses all GPUs, with one worker each, or one worker per core if there are none.
    """

    address: str | None = None
    workers: int | None = None
    gpus: int | None = None

    @contextmanager
    def start(self) -> Iterator[Workers]:
        """Start Ray on this machine, or connect to the cluster, for one job. Uses Ray if it already runs."""
        # Ray's own logs are for developers; usage reports are off unless the user enabled them.
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
                f"cannot connect to Ray at {self.address or 'this machine'}: {str(error).splitlines()[0]}; "
                "check that it runs, and that RAY_AUTH_TOKEN is set if it requires one"
            ) from error
        try:
            yield self._workers(ray)
        finally:
            ray.shutdown()

    def _workers(self, ray: Any) -> Workers:
        available = ray.cluster_resources()
        cpus, most = available.get("CPU", 0.0), int(available.get("GPU", 0))
        gpus = most if self.gpus is None else self.gpus
        if gpus > most:
            raise HomingError(f"{gpus} GPUs requested, {most} available")
        count = self.workers or gpus or max(1, int(cpus))
        if count < gpus:
            raise HomingError(f"each GPU needs a worker: got {count} workers for {gpus} GPUs")
        if cpus < 1:
            raise HomingError(f"at least one core is required, {cpus:g} available")
        most_each = min(_CORES_PER_WORKER, (cpus - CORES_PER_TASK["cpu"]) / count) if gpus else min(1.0, cpus / count)
        return Workers(count, math.floor(10_000 * most_each) / 10_000, gpus / count)  # Ray would round up


def _check_address(address: str | None) -> None:
    """Check that HOST:PORT accepts connections; Ray itself would retry for minutes. Raises OSError or ValueError."""
    host, _, port = (address or "").rpartition(":")
    if port.isdecimal():
        if int(port) not in _PORTS:
            raise ValueError(f"a port must be at most {_PORTS[-1]}, got {port}")
        socket.create_connection((host, int(port)), timeout=10).close()


@contextmanager
def _mute_stderr() -> Iterator[None]:
    """Discard what Ray's C++ code writes to stderr; errors are raised."""
    stderr_copy = os.dup(2)
    try:
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(stderr_copy, 2)
        os.close(stderr_copy)
