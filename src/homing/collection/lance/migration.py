"""Migrate a collection in Lance to another codebook: the next generation is built beside the current one.

References are matched by hash. Each generation assigns its own ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from homing._io.paths import Location
from homing.codebooks import Codebook
from homing.collection._transfer import PhotoRow, ReleaseRecord
from homing.collection.generations import delete_earlier_generations, find_generation, generation_path, make_current
from homing.collection.lance.catalog import LanceCatalog
from homing.collection.lance.folder import LanceFolder, create_lance, open_lance
from homing.collection.lance.synced_index import SyncedLanceIndex
from homing.collection.lance.table import column_in
from homing.collection.outcome import MigratedRelease, Migration
from homing.collection.reencode import RELEASED_FILE_MISSING, Reencoder
from homing.collection.references import NewPhotos
from homing.errors import CollectionError
from homing.extractors import Extractor
from homing.indexes.lance import CODE, VECTOR, codes_of, to_matrix

_CHUNK = 1_000  # references per lookup
ProgressCallback = Callable[[], None]


def migrate_lance(
    root: Location, codebook: Codebook, extractor: Extractor | None, advance: ProgressCallback
) -> Migration:
    """Build the next generation. Call again to resume an interrupted migration."""
    old = open_lance(root)
    if old.codebook.fingerprint == codebook.fingerprint:
        raise CollectionError(f"{root} has codebook '{codebook.name}' ({codebook.fingerprint[:12]}) already")
    target = generation_path(old.root, "next")
    if not (target / "collection.toml").is_file():
        create_lance(target, codebook)
    new = open_lance(root, which="next")
    if new.codebook.fingerprint != codebook.fingerprint:
        raise CollectionError(
            f"{root} is already being migrated to codebook '{new.codebook.name}' ({new.codebook.fingerprint[:12]}); "
            f"finish that migration, or delete {target} to start with another codebook"
        )
    return _reencode(old, new, extractor, advance)


def switch_lance(root: Location, extractor: Extractor | None, *, leave_missing: bool) -> Migration:
    """Make the next generation the current one, including references that were added in the meantime.

    There is no lock: writers may still add to the previous generation. Their references are migrated after the switch.
    """
    old, new = open_lance(root), open_lance(root, which="next")
    done = _reencode(old, new, extractor, lambda: None)
    if done.missing and not leave_missing:
        raise CollectionError(
            f"{len(done.missing):,} photos could not be migrated, the first: "
            f"{done.missing[0]}; restore their files, or continue without them: --leave-missing"
        )
    make_current(old.root)
    return _reencode(old, new, extractor, lambda: None)


def delete_previous_lance(root: Location) -> None:
    """Delete the generations before the current one."""
    find_generation(root, "current")
    delete_earlier_generations(root)


def _reencode(old: LanceFolder, new: LanceFolder, extractor: Extractor | None, advance: ProgressCallback) -> Migration:
    reencoder = LanceReencoder(old.codebook, new.codebook, extractor, advance)
    reencoder.run_lance(old.catalog, new.catalog)
    SyncedLanceIndex(new).compact()
    by_gain: dict[str, list[MigratedRelease]] = {"gain_kept": [], "gain_lost": [], "gain_unknown": []}
    for (photo, *_), row in old.catalog.log.release_records().items():
        new_id = new.catalog.find(photo) if row.state == "activated" and row.written else None
        status = None if new_id is None else new.catalog.find_release(new_id, row.path, row.sha256)
        if new_id is not None and status is not None:
            gain = (
                "gain_kept"
                if status.state == "activated"
                else "gain_unknown"
                if status.reason == RELEASED_FILE_MISSING
                else "gain_lost"
            )
            source, _ = new.catalog.source_and_state(new_id)
            by_gain[gain].append(MigratedRelease(source, row.path, status.reason))
    return Migration(
        generation=new.path,
        codebook=new.codebook.name,
        photos=new.catalog.counts()["photos"],
        missing=reencoder.missing,
        **by_gain,
    )


class LanceReencoder(Reencoder):
    """Copies references and releases between the Lance datasets of two generations, by hash."""

    def run_lance(self, old: LanceCatalog, new: LanceCatalog) -> None:
        """Update the next generation to the current state of the old one."""
        self.missing.clear()
        old.refresh()
        self._reencode_references(old, new)
        self._reassess_log(old, new)

    def _reencode_references(self, old: LanceCatalog, new: LanceCatalog) -> None:
        for batch in old.references.batches(["sha256", "source", CODE, VECTOR], size=_CHUNK):
            rows = list(self._as_rows(batch))
            hashes = [row.sha256 for row in rows]
            existing = new.references.rows(["sha256", "source"], column_in("sha256", hashes))
            known = dict(zip(existing["sha256"].to_pylist(), existing["source"].to_pylist(), strict=True))
            for row in rows:
                if known.get(row.sha256, row.source) != row.source:
                    new.references.update({"source": row.source}, column_in("sha256", [row.sha256]))
            wanted = [row for row in rows if row.sha256 not in known]
            if ready := self._with_new_codes(wanted) if wanted else []:
                new.add(_as_new(ready))
            self._report_done(len(rows))
        for batch in new.references.batches(["sha256"], size=_CHUNK):
            hashes = batch["sha256"].to_pylist()
            in_old = set(old.references.rows(["sha256"], column_in("sha256", hashes))["sha256"].to_pylist())
            removed = [number for each in hashes if each not in in_old if (number := new.find(each)) is not None]
            new.remove(removed)

    def _as_rows(self, batch: Any) -> Iterator[PhotoRow]:
        transformed = np.ascontiguousarray(to_matrix(batch[VECTOR]))
        vectors = self._old.quantizer.inverse_transform(transformed).astype(np.float16)
        for row, code, vector in zip(
            batch.select(["sha256", "source"]).to_pylist(), codes_of(batch), vectors, strict=True
        ):
            yield PhotoRow(0, row["sha256"], row["source"], "", "", code.tobytes(), vector.tobytes())

    def _reassess_log(self, old: LanceCatalog, new: LanceCatalog) -> None:
        existing, ready = new.log.release_records(), list[tuple[str, ReleaseRecord]]()
        for key, row in old.log.release_records().items():
            number, before = new.find(key[0]), existing.get(key)
            # Releases whose file was missing are evaluated again.
            if number is None or (before and before.written == row.written and before.reason != RELEASED_FILE_MISSING):
                continue
            (reassessed,) = self._reassess([row._replace(photo=number)], new.descriptors(np.array([number])))
            ready.append((key[0], reassessed))
            if len(ready) == _CHUNK:
                new.log.add_records(ready)
                ready = []
        if ready:
            new.log.add_records(ready)


def _as_new(rows: list[PhotoRow]) -> NewPhotos:
    return NewPhotos(
        [row.sha256 for row in rows],
        [row.source for row in rows],
        np.stack([np.frombuffer(row.code, np.uint8) for row in rows]),
        np.stack([np.frombuffer(row.vector, np.float16) for row in rows]).astype(np.float32),
    )
