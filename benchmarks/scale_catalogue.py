"""What the one writer of a collection takes for each photo, in bytes and in time, for benchmarks/scale.py."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from million import descriptors_of_photos

from homing.codebooks import Codebook
from homing.collection.catalogue import Catalogue, NewPhotos, ReleaseRow

COUNT = 20_000
PARCEL = 16  # photos that are recorded together: as many as travel together in a job of many machines
_KINDS = {"passive": False, "activated": True}


def record(codebook: Codebook) -> Iterator[dict[str, Any]]:
    """Bytes a photo and photos a second, of those that are only added and of those that are released as well."""
    for name, activated in _KINDS.items():
        descriptors = descriptors_of_photos(codebook, COUNT)
        codes = codebook.encode(descriptors)
        with TemporaryDirectory(dir=Path.cwd()) as folder:
            catalogue = Catalogue(file := Path(folder, "catalogue.sqlite"))
            catalogue.create()
            begun = time.perf_counter()
            for first in range(0, COUNT, PARCEL):
                some = slice(first, first + PARCEL)
                names = [f"/photos/{number // 1000:06}/{number:09}.jpg" for number in range(COUNT)[some]]
                hashes = [_hash(each) for each in names]
                rows = descriptors[some].numpy()
                ids = catalogue.add(NewPhotos(hashes, names, codes[some], rows))
                if activated:
                    planned = [(number, _release(name)) for number, name in zip(ids, names, strict=True)]
                    catalogue.plan_releases(planned, list(rows))
                    catalogue.confirm_releases(planned)
            took = time.perf_counter() - begun
            catalogue.close()
            yield {"kind": name, "bytes": file.stat().st_size / COUNT, "per_second": COUNT / took}


def _release(name: str) -> ReleaseRow:
    path = name.replace("photos", "released")
    return ReleaseRow("activated", path, _hash(path), "homing", psnr=43.8, ssim=0.99, linf=9.0, reason=None)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
