"""How many photos a second jobs on Ray do with one worker and with two, and what each stage takes.

python benchmarks/cluster.py PHOTOS                        # 640 photos of a folder, half as many to activate
python benchmarks/cluster.py PHOTOS --count 2000 --recipe homing --rounds 3

A worker is a process that computes on one core; GPUs are not used. Each job runs twice over: with all cores of the
machine, so that one worker has others for Ray and for the one who runs the job, and bound to as many cores as workers.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from homing import cluster
from homing._machine import hardware
from homing.activation import recipe_named
from homing.cluster import Machines, Throughput
from homing.collection import Collection, Outcome
from homing.evaluation.results import markdown
from homing.photo import Found, gather

WORKERS = (1, 2)
ROOM = {"all cores": False, "a core each": True}


@dataclass(frozen=True)
class Measured:
    """A job: photos a second when all workers are at work, and from its start; and what each stage took."""

    steady: float
    whole: float
    stages: list[Throughput]


def main() -> None:
    """Run each job with so many workers, print a table of rates and one of stages."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("photos", type=Path)
    asked.add_argument("--count", type=int, default=640, help="photos to add; half as many are activated")
    asked.add_argument("--recipe", default="homing-fast")
    asked.add_argument("--rounds", type=int, default=1, help="of all jobs, in turn; rates are medians")
    given = asked.parse_args()
    found = gather([given.photos])[: given.count]
    if len(found) < 128:  # of which half are activated, and rates are told from the 64th on
        asked.error(f"at least 128 photos are needed, got {len(found)}")
    jobs = {"add": found, "activate": found[: len(found) // 2]}
    cases = [(job, room, workers) for job in jobs for room in ROOM for workers in WORKERS]
    runs: dict[tuple[str, str, int], list[Measured]] = {case: [] for case in cases}
    for _ in range(given.rounds):
        for job, room, workers in cases:
            with _bound_to(workers if ROOM[room] else None):
                runs[job, room, workers].append(_run(job, jobs[job], workers, given.recipe))
            print(f"{job}, {workers}, {room}: {runs[job, room, workers][-1].steady:.1f}", file=sys.stderr, flush=True)
    print(f"{hardware()}; {len(found)} photos, {given.recipe}, {given.rounds} rounds\n")
    rows = [_row(f"{job}, {room}", [runs[job, room, workers] for workers in WORKERS]) for job in jobs for room in ROOM]
    both = [
        f"{count}, {what}" for what in ("steady", "with the start") for count in ("one worker", "two workers", "ratio")
    ]
    print(markdown(["photos a second", *both], rows))
    stages = [
        [job, str(workers), each.stage, f"{each.seconds:.1f}", f"{each.rate:.1f}"]
        for job, room, workers in cases
        if not ROOM[room]
        for each in runs[job, room, workers][-1].stages
    ]
    print(markdown(["job", "workers", "stage", "seconds of work", "photos a second each"], stages))


def _row(name: str, runs: Sequence[list[Measured]]) -> list[str]:
    cells = [name]
    for rates in ([[each.steady for each in some] for some in runs], [[each.whole for each in some] for some in runs]):
        one, two = map(median, rates)
        cells += [f"{one:.1f}", f"{two:.1f}", f"{two / one:.2f}"]
    return cells


@contextmanager
def _bound_to(cores: int | None) -> Iterator[None]:
    """Let all processes that begin from here on have so many cores, or all."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _run(job: str, found: list[Found], workers: int, recipe: str) -> Measured:
    """Steady is from a quarter of the photos, 64 at least, to the end: all workers have begun by then."""
    times: list[float] = []

    def report(_: Outcome) -> None:
        times.append(time.perf_counter())

    with TemporaryDirectory() as folder:
        home, machines = f"{folder}/c.homing", Machines(workers=workers, gpus=0)
        Collection.create(home).close()
        started = time.perf_counter()
        if job == "add":
            stages = cluster.add(found, home, machines=machines, report=report)
        else:
            out, chosen = f"{folder}/out", recipe_named(recipe)
            stages = cluster.activate(found, home, out, recipe=chosen, machines=machines, report=report)
    begin = len(times) // 64 * 16 - 1  # the last of a parcel: its photos are told together
    return Measured((len(times) - 1 - begin) / (times[-1] - times[begin]), len(times) / (times[-1] - started), stages)


if __name__ == "__main__":
    main()
