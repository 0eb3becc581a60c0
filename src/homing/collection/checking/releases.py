"""Whether released files are there, and are what was released."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import NamedTuple

from homing._parallel import map_ahead
from homing.collection.catalogue import Catalogue
from homing.collection.checking.findings import STALE, Findings
from homing.errors import PhotoError
from homing.photo import read_file

_ROWS = (
    "SELECT path, releases.sha256, photo, source, written, changed < datetime('now', ?)"
    " FROM releases JOIN photos ON id = photo"
)
_AGE = f"-{STALE} seconds"


class _Row(NamedTuple):
    path: str
    sha256: str
    photo: int
    source: str
    written: bool
    old: bool


def check_releases(catalogue: Catalogue, findings: Findings) -> None:
    """Check released files against their hashes.

    A file may hold whichever release of several went there. What was planned and never written is no finding: nobody
    was told of it, and the next `activate` writes it.
    """
    by_path: dict[str, list[_Row]] = defaultdict(list)
    for row in catalogue._all(f"{_ROWS} ORDER BY path", _AGE):
        by_path[row[0]].append(_Row(*row))
    for (path, planned), found in zip(by_path.items(), map_ahead(_hash, by_path), strict=True):
        if not any(each.written and each.sha256 == found for each in planned):
            _look_again(catalogue, path, [each.photo for each in planned], findings)


def _look_again(catalogue: Catalogue, path: str, photos: list[int], findings: Findings) -> None:
    """Somebody may have released it anew, or removed it, since the catalogue was read."""
    # The file first: of what it holds the catalogue knew before it was written.
    found = _hash(path)
    wanted = f"{_ROWS} WHERE path = ? AND (releases.sha256 = ? OR photo IN (SELECT value FROM json_each(?)))"
    planned = [_Row(*row) for row in catalogue._all(wanted, _AGE, path, found, json.dumps(photos))]
    same = [each for each in planned if each.sha256 == found]
    if any(each.written for each in same):
        return
    if same:
        # Who repairs is alone; beside others it may be that one of them has just written it.
        if findings.repair or same[0].old:
            mend = partial(_confirm, catalogue, same[0])
            problem = f"{path} was written, but a crash came before that was noted"
            findings.mend("release", problem, "noted", mend, "run the same homing activate again")
    elif any(each.written for each in planned):
        source = planned[-1].source
        if found is None:
            again = f"put it back, or release it again: homing activate COLLECTION {source} --out {Path(path).parent}"
            findings.leave("release", f"{path} is gone, or cannot be read", again)
        else:
            again = "move it away, and release the photo again"
            findings.leave("release", f"{path} is not what was released of {source}", again)


def _hash(path: str) -> str | None:
    try:
        return hashlib.sha256(read_file(Path(path))).hexdigest()
    except PhotoError:
        return None


def _confirm(catalogue: Catalogue, planned: _Row) -> None:
    row = catalogue.release(planned.photo, planned.path, planned.sha256)
    assert row is not None
    catalogue.confirm_releases([(planned.photo, row)])
