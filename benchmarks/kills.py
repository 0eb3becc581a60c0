"""Kill processes that change collections at random instants and check that nothing is lost.

python benchmarks/kills.py --kills 500
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

from tests.collection.crashes import KilledCollection, fork_server

EACH = 50  # kills per collection


def main() -> None:
    """Print the counts, and how often a kill left something to repair."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started, total = time.perf_counter(), Counter[str]()
    with fork_server() as server:
        for first in range(0, options.kills, EACH):
            with TemporaryDirectory() as folder:
                collection = KilledCollection(Path(folder), seed=options.seed + first)
                for _ in range(min(EACH, options.kills - first)):
                    collection.kill_once(server)
                total += collection.seen
                print(f"{total['kills']} kills, nothing lost", file=sys.stderr, flush=True)
    print(f"{hardware()}; {time.perf_counter() - started:.0f} s")
    print(f"{total['kills']:,} kills of processes with {total['photos']:,} photos: nothing lost.")
    print(f"Reported: {total['added']:,} added, {total['activated']:,} activated, {total['removed']:,} removed.")
    print(f"Repaired: {total['file']} temporary files, {total['release']} releases, {total['index']} snapshots.")


if __name__ == "__main__":
    main()
