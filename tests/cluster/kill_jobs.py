"""Jobs on Ray that are killed at random times, or whose workers are, and the checks that follow."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.cluster.helpers import MEMORY, small_codebook, verify_releases
from tests.collection.tiny import tiny_photos

from homing.collection import Collection

ROOT = Path(__file__).parents[2]
MAX_KILL_INTERVAL = 5.0  # seconds between two kills
TIMEOUT = 600
WORKERS = ("ray::MapWorker", "ray::MapBatches", "ray::CatalogActor")  # the processes of a job


class KillScenario:
    """A collection, photos, and jobs that release them during kills."""

    def __init__(self, folder: Path, photos: int, seed: int = 0) -> None:
        self.folder, self.rng = folder, random.Random(seed)
        self.paths = tiny_photos(folder / "photos", photos, seed)
        self.out, self.collection_path = folder / "out", folder / "c.homing"
        self.killed: Counter[str] = Counter()
        Collection.create(self.collection_path, codebook=small_codebook(folder)).close()

    def start(self) -> subprocess.Popen[str]:
        """Start a job that activates all photos, and wait until it has released one."""
        arguments = [
            "cluster",
            "activate",
            self.folder / "photos",
            "--collection",
            self.collection_path,
            "--out",
            self.out,
        ]
        options = ["--recipe", "paper-fast", "--workers", "2"]
        environment = os.environ | {"RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": str(MEMORY), "OMP_NUM_THREADS": "1"}
        before = self._released()
        job = subprocess.Popen(
            [sys.executable, "-m", "homing", *map(str, arguments), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            cwd=ROOT,
        )
        _wait(lambda: self._released() > before or job.poll() is not None, "the job released nothing")
        return job

    def kill_workers(self, kills: int) -> None:
        """Run a job and kill `kills` of its workers. The job must succeed."""
        job = self.start()
        while kills and job.poll() is None:
            time.sleep(self.rng.uniform(0, MAX_KILL_INTERVAL))
            workers = {number: name for number, name in _descendants(job.pid).items() if name.startswith(WORKERS)}
            if workers and job.poll() is None:
                number = self.rng.choice(sorted(workers))
                os.kill(number, signal.SIGKILL)
                self.killed[workers[number].partition("ray::")[2]] += 1
                kills -= 1
        self._end(job)

    def kill_job(self) -> None:
        """Kill a running job, and check that its child processes end too."""
        job = self.start()
        time.sleep(self.rng.uniform(0, 1))
        children = _descendants(job.pid)
        job.kill()
        job.communicate()
        self.killed["job"] += 1
        _wait(lambda: not any(_is_alive(number) for number in children), "processes of a killed job still run")

    def finish(self) -> None:
        """Run a job to its end without kills."""
        self._end(self.start())

    def verify(self) -> None:
        """Check that each photo is released exactly once."""
        with Collection.open(self.collection_path) as collection:
            verify_releases(collection, self.paths, self.out)

    def left(self) -> int:
        """Photos that are not released yet."""
        return len(self.paths) - self._released()

    def _released(self) -> int:
        return sum(1 for _ in self.out.glob("[!.]*"))

    def _end(self, job: subprocess.Popen[str]) -> None:
        reported, _ = job.communicate(timeout=TIMEOUT)
        assert job.returncode == 0, reported


def _descendants(process: int) -> dict[int, str]:
    """The names of all descendants of a process, by process id."""
    parents, names = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat, command = (folder / "stat").read_text(), (folder / "cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # the process has just ended
        parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
        names[int(folder.name)] = command.replace("\0", " ").strip()
    found, more = set[int](), {process}
    while more:
        more = {number for number, parent in parents.items() if parent in more}
        found |= more
    return {number: names[number] for number in found}


def _is_alive(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def _wait(until, message: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not until():
        assert time.monotonic() < deadline, message
        time.sleep(0.05)
