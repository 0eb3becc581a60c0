"""Whether the snapshot of the index is the one that was kept, and holds what the catalogue holds."""

from __future__ import annotations

import hashlib

import numpy as np

from homing.collection._live import LiveIndex
from homing.collection.checking.findings import Findings
from homing.collection.folder import Folder
from homing.errors import CollectionError

_FACTS = ("revision", "snapshot_revision", "snapshot_sha256")


def check_snapshot(folder: Folder, findings: Findings) -> None:
    """Check the snapshot, and that the index a search would look into holds what the catalogue holds."""
    before = [folder.catalogue.fact(name) for name in _FACTS]
    problem = _problem(folder, before[-1])
    if problem is None or before != [folder.catalogue.fact(name) for name in _FACTS]:
        return  # in the second case somebody wrote meanwhile

    def mend() -> None:
        live = LiveIndex(folder, anew=True)
        live.current()
        live.keep()
        if not live.kept:
            raise CollectionError("no snapshot could be written")

    by_hand = "nothing is lost, the next search builds the index from the catalogue"
    findings.mend("index", f"{folder.path / 'index.faiss'} {problem}", "built anew from the catalogue", mend, by_hand)


def _problem(folder: Folder, sha256: str | None) -> str | None:
    file = folder.path / "index.faiss"
    if sha256 is None:
        return None  # none was kept yet, and none is read
    try:
        data = file.read_bytes()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if hashlib.sha256(data).hexdigest() != sha256:
        return "is damaged, or a crash came before its hash was noted"
    kept, wanted = _sorted(LiveIndex(folder)), _sorted(LiveIndex(folder, anew=True))
    if not np.array_equal(kept[0], wanted[0]):
        return f"holds {len(kept[0]):,} references, not the {len(wanted[0]):,} of the catalogue and the background"
    different = (kept[1] != wanted[1]).any(axis=1).sum()
    return f"holds {different:,} codes that are not those of the catalogue" if different else None


def _sorted(live: LiveIndex) -> tuple[np.ndarray, np.ndarray]:
    ids, codes = live.current().contents()
    order = np.argsort(ids)
    return ids[order], codes[order]
