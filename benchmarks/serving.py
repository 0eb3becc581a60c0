"""The service under load: how long searches take with 1, 8 and 64 clients, and what of that is the network's time.

python benchmarks/serving.py COLLECTION [SECONDS]    # 20 seconds for each number of clients
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from statistics import median, quantiles

import httpx

from homing._machine import hardware
from homing.evaluation.results import markdown

CLIENTS = (1, 8, 64)
PHOTO = "china.jpg"


def main() -> None:
    """Print a table in Markdown."""
    folder, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 20
    command = [sys.executable, "-m", "homing", "serve", folder, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = re.search(r"at (http://\S+)", process.stderr.readline())
            assert found is not None, "the service did not start"
            plan = _post(httpx.Client(timeout=60), found[1]).json()["plan"]
            print(f"{hardware()}; {plan}\n", flush=True)
            rows = [_row(found[1], clients, seconds) for clients in CLIENTS]
        finally:
            process.terminate()
    headings = ["clients", "searches a second", "p50, ms", "p95, ms", "p99, ms", "beside the network, p50", "p95"]
    print(markdown([*headings, "of that the index, p95", "answers"], rows))


def _row(address: str, clients: int, seconds: float) -> list[str]:
    """So many clients that ask one search after the other, for so long."""
    end = time.perf_counter() + seconds

    def ask(_: int) -> list[tuple[float, float, float, int]]:
        seen = []
        with httpx.Client(timeout=60) as client:
            while time.perf_counter() < end:
                started = time.perf_counter()
                answer = _post(client, address)
                took = 1000 * (time.perf_counter() - started)
                if answer.status_code == 429:
                    time.sleep(float(answer.headers["retry-after"]))
                spent = answer.json().get("milliseconds", {"network": 0.0, "search": 0.0})
                seen.append((took, spent["network"], spent["search"], answer.status_code))
        return seen

    with ThreadPoolExecutor(clients) as pool:
        seen = [each for answers in pool.map(ask, range(clients)) for each in answers]
    good = [each for each in seen if each[3] == 200]
    took, beside = [each[0] for each in good], [each[0] - each[1] for each in good]
    told = ", ".join(f"{count:,} × {status}" for status, count in sorted(Counter(each[3] for each in seen).items()))
    figures = [median(took), _at(took, 95), _at(took, 99), median(beside), _at(beside, 95)]
    index = _at([each[2] for each in good], 95)
    return [str(clients), f"{len(good) / seconds:.1f}", *(f"{each:.1f}" for each in [*figures, index]), told]


def _post(client: httpx.Client, address: str) -> httpx.Response:
    data = files("sklearn.datasets.images").joinpath(PHOTO).read_bytes()
    return client.post(f"{address}/v1/search", files={"photo": (PHOTO, data)})


def _at(values: list[float], percent: int) -> float:
    return quantiles(values, n=100)[percent - 1]


if __name__ == "__main__":
    main()
