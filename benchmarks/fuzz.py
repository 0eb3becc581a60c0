"""Read damaged files of every format and count the outcomes: each must be decoded or refused with one line.

python benchmarks/fuzz.py --files 5000
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

from homing._tensors import hardware
from homing.bench.tables import markdown

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.photo.fuzzing import damaged, read_in_process

KINDS = ("decoded", "refused", "raised", "hung", "crashed")


def main() -> None:
    """Print a table in Markdown; exit with 1 if a file was neither decoded nor refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.files)
    names = [damaged(number)[0] for number in numbers]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    slowest, bad, started = 0.0, 0, time.perf_counter()
    for number, name, verdict in zip(
        numbers, names, read_in_process(damaged(number)[1] for number in numbers), strict=True
    ):
        counts[name.partition("-")[0]][verdict.kind] += 1
        slowest = max(slowest, verdict.seconds)
        if verdict.kind not in ("decoded", "refused"):
            bad += 1
            print(f"file {number}, {name}: {verdict.kind} after {verdict.seconds:.1f} s: {verdict.words}", flush=True)
    print(f"{hardware()}; {time.perf_counter() - started:.0f} s, the slowest file {slowest:.2f} s\n")
    rows = [[name, *(f"{counts[name][kind]:,}" for kind in KINDS)] for name in sorted(counts)]
    rows.append(["all", *(f"{sum(each[kind] for each in counts.values()):,}" for kind in KINDS)])
    print(markdown(["format", *KINDS], rows))
    sys.exit(int(bad > 0))


if __name__ == "__main__":
    main()
