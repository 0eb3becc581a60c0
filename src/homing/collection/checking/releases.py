"""Whether released files are there, and are what was released."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import NamedTuple

from homing._parallel import map_ahead
from homing.collection.catalogue import Catalogue
from homing.collection.checking.findings import Findings
from homing.errors import PhotoError
from homing.photo import read_file


class _Planned(NamedTuple):
    path: str
    sha256: str
    photo: int
    source: str
    written: bool


def check_releases(catalogue: Catalogue, findings: Findings) -> None:
    """Check released files against their hashes.

    A file may hold whichever release of several went there. What was planned and never written is no finding: nobody
    was told of it, and the next `activate` writes it.
    """
    by_path: dict[str, list[_Planned]] = defaultdict(list)
    query = "SELECT path, releases.sha256, photo, source, written FROM releases JOIN photos ON id = photo ORDER BY path"
    for row in catalogue._all(query):
        by_path[row[0]].append(_Planned(*row))
    for (path, planned), found in zip(by_path.items(), map_ahead(_hash, by_path), strict=True):
        same = [each for each in planned if each.sha256 == found]
        if any(each.written for each in same):
            continue
        if same:
            mend = partial(_confirm, catalogue, same[0])
            problem = f"{path} was written, but a crash came before that was noted"
            findings.mend("release", problem, "noted", mend, "run the same homing activate again")
        elif any(each.written for each in planned):
            source = planned[-1].source
            if found is None:
                again = (
                    f"put it back, or release it again: homing activate COLLECTION {source} --out {Path(path).parent}"
                )
                findings.leave("release", f"{path} is gone, or cannot be read", again)
            else:
                findings.leave(
                    "release",
                    f"{path} is not what was released of {source}",
                    "move it away, and release the photo again",
                )


def _hash(path: str) -> str | None:
    try:
        return hashlib.sha256(read_file(Path(path))).hexdigest()
    except PhotoError:
        return None


def _confirm(catalogue: Catalogue, planned: _Planned) -> None:
    row = catalogue.release(planned.photo, planned.path, planned.sha256)
    assert row is not None
    catalogue.confirm_releases([(planned.photo, row)])
