"""Kill workers of jobs on Ray, and some whole jobs, at random instants, and check that nothing is lost.

python benchmarks/cluster_kills.py --kills 20
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from homing._tensors import hardware

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.cluster.kill_jobs import KillScenario


def main() -> None:
    """Kill workers and jobs, check the collection after each and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="number of workers to kill")
    parser.add_argument("--jobs", type=int, default=2, help="number of whole jobs to kill")
    parser.add_argument("--photos", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started, killed, photos = time.perf_counter(), Counter[str](), 0
    while killed.total() - killed["job"] < options.kills:
        with TemporaryDirectory() as folder:
            scenario = KillScenario(Path(folder), options.photos, options.seed + photos)
            for _ in range(options.jobs - killed["job"]):
                scenario.kill_job()
            scenario.kill_workers(options.kills - (killed.total() - killed["job"]))
            scenario.verify()
            killed += scenario.killed
            photos += options.photos
            print(f"{killed.total()} kills, nothing lost", file=sys.stderr, flush=True)
    print(f"{hardware()}; {time.perf_counter() - started:.0f} s")
    print(f"{killed.total() - killed['job']} workers and {killed['job']} jobs killed, {photos:,} photos:")
    print("each is once in the collection and in the output folder, and its file is the recorded one.")
    print("Killed: " + ", ".join(f"{count} {name}" for name, count in killed.most_common()))


if __name__ == "__main__":
    main()
