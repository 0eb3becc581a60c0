"""How many photos a second jobs on Ray do with one worker and with two, and what each stage takes.

python benchmarks/cluster.py PHOTOS                        # 320 photos of a folder
python benchmarks/cluster.py PHOTOS --count 64 --recipe homing
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from homing import cluster
from homing._machine import hardware
from homing.activation import recipe_named
from homing.cluster import Machines, Throughput
from homing.collection import Collection, Outcome
from homing.evaluation.results import markdown
from homing.photo import Found, gather

WORKERS = (1, 2)


def main() -> None:
    """Run each job with so many workers, print a table of rates and one of stages."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("photos", type=Path)
    asked.add_argument("--count", type=int, default=320)
    asked.add_argument("--recipe", default="homing-fast")
    given = asked.parse_args()
    found = gather([given.photos])[: given.count]
    rates, rows = [], []
    for job in ("add", "activate"):
        measured = [_run(job, found, workers, given.recipe) for workers in WORKERS]
        (one, _), (two, _) = measured
        rates.append([job, f"{one:.1f}", f"{two:.1f}", f"{two / one:.2f}"])
        for workers, (_, stages) in zip(WORKERS, measured, strict=True):
            rows += [[job, workers, each.stage, f"{each.seconds:.1f}", f"{each.rate:.1f}"] for each in stages]
    print(f"{hardware()}; {len(found)} photos, {given.recipe}\n")
    print(markdown(["photos a second", "one worker", "two workers", "ratio"], rates))
    print(markdown(["job", "workers", "stage", "seconds of work", "photos a second each"], rows))


def _run(job: str, found: list[Found], workers: int, recipe: str) -> tuple[float, list[Throughput]]:
    """Photos a second from a tenth of them to the end, when all workers have begun; and what each stage took."""
    times: list[float] = []

    def report(_: Outcome) -> None:
        times.append(time.perf_counter())

    with TemporaryDirectory() as folder:
        home, machines = f"{folder}/c.homing", Machines(workers=workers)
        Collection.create(home).close()
        if job == "add":
            stages = cluster.add(found, home, machines=machines, report=report)
        else:
            out, chosen = f"{folder}/out", recipe_named(recipe)
            stages = cluster.activate(found, home, out, recipe=chosen, machines=machines, report=report)
    begin = len(times) // 10
    return (len(times) - 1 - begin) / (times[-1] - times[begin]), stages


if __name__ == "__main__":
    main()
