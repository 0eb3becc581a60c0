"""Check that released files exist and are unchanged."""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from functools import partial
from typing import NamedTuple

from homing._io.parallel import prefetch_map
from homing._io.paths import location
from homing.collection.catalog import Catalog
from homing.collection.checks.findings import STALE_SECONDS, Findings
from homing.errors import HomingError
from homing.photo import read_file

_ROWS = (
    "SELECT path, releases.sha256, photo, source, written, changed < datetime('now', ?)"
    " FROM releases JOIN photos ON id = photo"
)
_AGE = f"-{STALE_SECONDS} seconds"


class _ReleaseRow(NamedTuple):
    path: str
    sha256: str
    photo: int
    source: str
    written: bool
    old: bool


def check_releases(catalog: Catalog, findings: Findings) -> None:
    """Check released files against their hashes.

    If several releases have the same path, the file may hold any of them. A planned release without a file is no
    finding: it was never reported, and the next `activate` writes it.
    """
    by_path: dict[str, list[_ReleaseRow]] = defaultdict(list)
    for row in catalog._fetch_all(f"{_ROWS} ORDER BY path", _AGE):
        by_path[row[0]].append(_ReleaseRow(*row))
    for (path, planned), found in zip(by_path.items(), prefetch_map(_hash, by_path), strict=True):
        if not any(each.written and each.sha256 == found for each in planned):
            _recheck(catalog, path, [each.photo for each in planned], findings)


def _recheck(catalog: Catalog, path: str, photos: list[int], findings: Findings) -> None:
    """Check a path again, since a concurrent job may have released or removed it after the catalog was read."""
    # Read the file before the catalog: a release is in the catalog before its file is written.
    found = _hash(path)
    wanted = f"{_ROWS} WHERE path = ? AND (releases.sha256 = ? OR photo IN (SELECT value FROM json_each(?)))"
    planned = [_ReleaseRow(*row) for row in catalog._fetch_all(wanted, _AGE, path, found, json.dumps(photos))]
    same = [each for each in planned if each.sha256 == found]
    if any(each.written for each in same):
        return
    if same:
        # A repair holds the lock. Without it, a concurrent job may have just written the file.
        if findings.repair or same[0].old:
            repair = partial(_confirm, catalog, same[0])
            problem = f"{path} was written, but a crash prevented recording it"
            findings.repair_or_report("release", problem, "recorded", repair, "run the same homing activate again")
    elif any(each.written for each in planned):
        source = planned[-1].source
        if found is None:
            out = path.rpartition(os.sep)[0]
            by_hand = f"restore it, or release the photo again: homing activate COLLECTION {source} --out {out}"
            findings.report("release", f"{path} is missing or cannot be read", by_hand)
        else:
            by_hand = "move it to another folder, and release the photo again"
            findings.report("release", f"{path} is not the file that was released for {source}", by_hand)


def _hash(path: str) -> str | None:
    try:
        return hashlib.sha256(read_file(location(path))).hexdigest()
    except HomingError:
        return None


def _confirm(catalog: Catalog, planned: _ReleaseRow) -> None:
    row = catalog.find_release(planned.photo, planned.path, planned.sha256)
    assert row is not None
    catalog.confirm_releases([(planned.photo, row)])
