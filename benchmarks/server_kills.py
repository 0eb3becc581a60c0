"""Kill or stop services under load at random instants and check that nothing is lost.

python benchmarks/server_kills.py --kills 50 --stops 20
python benchmarks/server_kills.py --kills 50 --stops 20 --lance
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from homing._tensors import hardware
from homing.collection import Collection

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.service.server_kills import CLIENTS, CrashTest


def main() -> None:
    """Print the counts; exit with 1 if a request accepted before a stop was left unanswered."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--stops", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lance", action="store_true", help="store the collection in Lance, not in SQLite")
    options = parser.parse_args()
    started, unanswered = time.perf_counter(), []
    with TemporaryDirectory() as root:
        folder = Path(root) / ("killed.lance" if options.lance else "killed.homing")
        Collection.create(folder, with_distractors=True).close()
        crash_test = CrashTest(Path(root) / "photos", folder, options.seed)
        for number, by in enumerate([signal.SIGKILL] * options.kills + [signal.SIGTERM] * options.stops):
            left = crash_test.run_and_signal(by)
            unanswered += left if by == signal.SIGTERM else []
            print(
                f"{number + 1} ended, {len(crash_test.acknowledged):,} photos acknowledged", file=sys.stderr, flush=True
            )
    released = sum(each.released is not None for each in crash_test.acknowledged)
    print(f"{hardware()}; {time.perf_counter() - started:.0f} s")
    print(f"{options.kills} kills and {options.stops} stops of a service with {CLIENTS} clients: nothing lost.")
    print(f"Acknowledged: {len(crash_test.acknowledged):,} photos, {released:,} of them with a file to release.")
    print(f"Answers: {dict(crash_test.seen)}; unanswered before a stop: {unanswered or 'none'}")
    sys.exit(1 if unanswered else 0)


if __name__ == "__main__":
    main()
