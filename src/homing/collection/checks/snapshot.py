"""Check the snapshot of the index against its hash and the catalog."""

from __future__ import annotations

import hashlib

import numpy as np

from homing.collection.checks.findings import Findings
from homing.collection.folder import Folder
from homing.collection.synced_index import SyncedFaissIndex
from homing.errors import CollectionError

_METADATA = ("revision", "snapshot_revision", "snapshot_sha256")


def check_snapshot(folder: Folder, findings: Findings) -> None:
    """Check the snapshot, and that the index loaded from it has the references of the catalog."""
    before = [folder.catalog.get_metadata(name) for name in _METADATA]
    problem = _problem(folder, before[-1])
    if problem is None or before != [folder.catalog.get_metadata(name) for name in _METADATA]:
        return  # if the revision changed, a concurrent job wrote to the collection

    def repair() -> None:
        synced = SyncedFaissIndex(folder, rebuild=True)
        synced.current()
        synced.save()
        if not synced.saved:
            raise CollectionError("no snapshot could be written")

    by_hand = "no data is lost; the next search builds the index from the catalog"
    findings.repair_or_report(
        "index", f"{folder.path / 'index.faiss'} {problem}", "rebuilt from the catalog", repair, by_hand
    )


def _problem(folder: Folder, sha256: str | None) -> str | None:
    file = folder.path / "index.faiss"
    if sha256 is None:
        return None  # no snapshot was saved, so none is loaded
    try:
        data = file.read_bytes()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if hashlib.sha256(data).hexdigest() != sha256:
        return "is damaged, or a crash prevented recording its hash"
    snapshot, wanted = _sorted(SyncedFaissIndex(folder)), _sorted(SyncedFaissIndex(folder, rebuild=True))
    if not np.array_equal(snapshot[0], wanted[0]):
        return f"holds {len(snapshot[0]):,} ids, expected {len(wanted[0]):,} of the catalog and the distractors"
    different = (snapshot[1] != wanted[1]).any(axis=1).sum()
    return f"holds {different:,} codes that differ from the catalog" if different else None


def _sorted(synced: SyncedFaissIndex) -> tuple[np.ndarray, np.ndarray]:
    ids, codes = synced.current().contents()
    order = np.argsort(ids)
    return ids[order], codes[order]
