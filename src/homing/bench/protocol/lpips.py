"""LPIPS of released files, cached between runs."""

from __future__ import annotations

import numpy as np

from homing.bench.protocol.cache import CachedArray, cache_key, file_state
from homing.bench.protocol.config import CodebookRun
from homing.bench.protocol.release import ReleaseResult
from homing.perception.quality import Distance
from homing.photo import Photo


def measure_lpips(run: CodebookRun, release_result: ReleaseResult, name: str, distance: Distance) -> list[float]:
    """LPIPS between each activated file of a release and its original, in the order of the files."""
    originals = {original.source: original.file for original in run.originals}
    pairs = [(originals[file.source], file.file) for file in release_result.activated]
    if not pairs:
        return []
    key = cache_key("lpips", [[*file_state(original), *file_state(released)] for original, released in pairs])
    cache = CachedArray(run.config.out / f"lpips-{key}.npy", (len(pairs),), np.float32)
    with run.progress(f"{run.codebook.name}: measuring LPIPS, {name}", len(pairs)) as advance:
        for position, (original, released) in enumerate(pairs):
            if position >= cache.count:
                cache.append(
                    np.array([distance(Photo.load(original).pixels(), Photo.load(released).pixels())], np.float32)
                )
            advance()
    return [float(each) for each in cache.rows]
