"""Bytes and time per photo in the catalog of a collection, for benchmarks/scale.py."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from million import descriptors_of_photos

from homing.codebooks import Codebook
from homing.collection import Collection
from homing.collection.references import NewPhotos, StoredRelease, to_float16
from homing.collection.storage import Storage

COUNTS = {"faiss": 20_000, "lance": 4_000}  # fewer for Lance, where every batch is a version of the dataset
BATCH = 16  # photos recorded together, as in a job on a cluster
_KINDS = {"passive": False, "activated": True}


def record(codebook: Codebook, engines: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield bytes per photo and photos per second, for passive and for activated photos."""
    for engine in engines:
        for kind, activated in _KINDS.items():
            with TemporaryDirectory(dir=Path.cwd()) as folder:
                root, count = Path(folder, f"c.{'lance' if engine == 'lance' else 'homing'}"), COUNTS[engine]
                with Collection.create(root, codebook=codebook) as collection:
                    took = _fill(collection.storage, codebook, count, activated=activated)
                    if engine == "lance":  # files of 16 photos are mostly overhead
                        collection.compact(older_than=timedelta(0))
                files = [file for file in root.rglob("*") if file.is_file() and _holds_photos(file)]
                size = sum(file.stat().st_size for file in files)
                yield {"engine": engine, "kind": kind, "bytes": size / count, "per_second": count / took}


def _fill(catalog: Storage, codebook: Codebook, count: int, *, activated: bool) -> float:
    """Seconds to record this number of photos in a catalog."""
    descriptors = descriptors_of_photos(codebook, count)
    codes = codebook.encode(descriptors)
    begun = time.perf_counter()
    for first in range(0, count, BATCH):
        batch = slice(first, first + BATCH)
        names = [f"/photos/{number // 1000:06}/{number:09}.jpg" for number in range(count)[batch]]
        rows = descriptors[batch].numpy()
        ids = catalog.add(NewPhotos([_hash(each) for each in names], names, codes[batch], rows))
        if activated:
            planned = [_release(*each) for each in zip(ids, names, to_float16(rows), strict=True)]
            catalog.plan_releases(planned)
            catalog.confirm_releases(planned)
    return time.perf_counter() - begun


def _holds_photos(file: Path) -> bool:
    """Whether a file belongs to the catalog: neither a codebook nor an index, which are counted separately."""
    return file.name.startswith("catalog.sqlite") or "data" in file.parts


def _release(photo: int, name: str, vector: np.ndarray) -> StoredRelease:
    path = name.replace("photos", "released")
    quality = {"psnr": 43.8, "ssim": 0.99, "linf": 9.0}
    return StoredRelease(
        photo, path, "activated", _hash(path), "homing", **quality, reason=None, vector=vector.tobytes()
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
