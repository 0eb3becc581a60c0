"""Photos per second of jobs on Ray with one worker and with two, and time per stage.

python benchmarks/cluster.py PHOTOS                        # 640 photos of a folder, half as many to activate
python benchmarks/cluster.py PHOTOS --count 2000 --recipe homing --rounds 3

A worker is a process that computes on one core; GPUs are not used. Each job runs in two configurations: with all cores
of the machine, where Ray and the driver have cores of their own, and bound to as many cores as there are workers.
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
from homing._tensors import hardware
from homing.activation import resolve_recipe
from homing.bench.tables import markdown
from homing.cluster import Resources, Throughput
from homing.collection import Collection, Outcome
from homing.photo import LocalPhoto, find_photos

WORKERS = (1, 2)
BINDINGS = {"all cores": False, "one core each": True}


@dataclass(frozen=True)
class JobTiming:
    """Photos per second of a job, in the steady state and including the start, and its stages."""

    steady: float
    whole: float
    stages: list[Throughput]


def main() -> None:
    """Run each job with each number of workers; print a table of rates and one of stages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--count", type=int, default=640, help="photos to add; half as many are activated")
    parser.add_argument("--recipe", default="homing-fast")
    parser.add_argument("--rounds", type=int, default=1, help="rounds over all jobs; rates are medians")
    options = parser.parse_args()
    found = find_photos([options.photos])[: options.count]
    if len(found) < 128:  # half are activated, and rates count from the 64th photo on
        parser.error(f"at least 128 photos are needed, got {len(found)}")
    jobs = {"add": found, "activate": found[: len(found) // 2]}
    cases = [(job, binding, workers) for job in jobs for binding in BINDINGS for workers in WORKERS]
    runs: dict[tuple[str, str, int], list[JobTiming]] = {case: [] for case in cases}
    for _ in range(options.rounds):
        for job, binding, workers in cases:
            with _bound_to(workers if BINDINGS[binding] else None):
                runs[job, binding, workers].append(_run(job, jobs[job], workers, options.recipe))
            print(
                f"{job}, {workers}, {binding}: {runs[job, binding, workers][-1].steady:.1f}",
                file=sys.stderr,
                flush=True,
            )
    print(f"{hardware()}; {len(found)} photos, {options.recipe}, {options.rounds} rounds\n")
    rows = [
        _row(f"{job}, {binding}", [runs[job, binding, workers] for workers in WORKERS])
        for job in jobs
        for binding in BINDINGS
    ]
    headings = [
        f"{count}, {what}"
        for what in ("steady", "including the start")
        for count in ("one worker", "two workers", "ratio")
    ]
    print(markdown(["photos per second", *headings], rows))
    stages = [
        [job, str(workers), each.stage, f"{each.seconds:.1f}", f"{each.photos_per_second:.1f}"]
        for job, binding, workers in cases
        if not BINDINGS[binding]
        for each in runs[job, binding, workers][-1].stages
    ]
    print(markdown(["job", "workers", "stage", "seconds of work", "photos per second each"], stages))


def _row(name: str, runs: Sequence[list[JobTiming]]) -> list[str]:
    cells = [name]
    for rates in ([[each.steady for each in run] for run in runs], [[each.whole for each in run] for run in runs]):
        one, two = map(median, rates)
        cells += [f"{one:.1f}", f"{two:.1f}", f"{two / one:.2f}"]
    return cells


@contextmanager
def _bound_to(cores: int | None) -> Iterator[None]:
    """Bind processes started inside the block to this number of cores, or to all."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _run(job: str, found: list[LocalPhoto], workers: int, recipe: str) -> JobTiming:
    """Run one job; the steady state begins after a quarter of the photos, when all workers are running."""
    times: list[float] = []

    def report(_: Outcome) -> None:
        times.append(time.perf_counter())

    with TemporaryDirectory() as folder:
        collection_path, resources = f"{folder}/c.homing", Resources(workers=workers, gpus=0)
        Collection.create(collection_path).close()
        started = time.perf_counter()
        if job == "add":
            stages = cluster.add(found, collection_path, resources=resources, on_outcome=report)
        else:
            out, chosen = f"{folder}/out", resolve_recipe(recipe)
            stages = cluster.activate(
                found, collection_path, out, recipe=chosen, resources=resources, on_outcome=report
            )
    begin = len(times) // 64 * 16 - 1  # the last photo of a batch: outcomes of a batch are reported together
    return JobTiming((len(times) - 1 - begin) / (times[-1] - times[begin]), len(times) / (times[-1] - started), stages)


if __name__ == "__main__":
    main()
