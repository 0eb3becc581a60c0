"""Time of the bundled networks per photo on the CPU.

python benchmarks/forward.py
"""

from __future__ import annotations

import time
from statistics import median

import torch

from homing import extractors

NETWORKS = ("homing-1", "imagenet-lite0")
BATCH = 16
ROUNDS = 40


def main() -> None:
    """Print milliseconds per photo; the networks alternate, so that other load affects both equally."""
    loaded = [extractors.load(name, device="cpu") for name in NETWORKS]
    photos = torch.rand(BATCH, 3, 224, 224)
    times: dict[str, list[float]] = {name: [] for name in NETWORKS}
    with torch.inference_mode():
        for _ in range(ROUNDS):
            for extractor in loaded:
                started = time.perf_counter()
                extractor(photos)
                times[extractor.name].append(1000 * (time.perf_counter() - started) / BATCH)
    print(f"{torch.get_num_threads()} threads, batches of {BATCH}, 224 px; median of {ROUNDS}")
    for name, durations in times.items():
        print(f"{name:<16}{median(durations):6.1f} ms per photo")


if __name__ == "__main__":
    main()
