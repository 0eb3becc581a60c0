"""Migrate a collection to another codebook. Both generations can be searched until the switch.

References are matched by hash: a storage may give them other ids in the next generation.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from homing import codebooks, extractors
from homing._io.parallel import prefetch_map
from homing._io.paths import Location, location
from homing.activation.release_check import MIN_LOSS_DECREASE
from homing.collection.outcome import MigratedRelease, Migration
from homing.collection.references import StoredReference, StoredRelease
from homing.collection.storage import Parts, Storage, create_generation, open_storage
from homing.collection.storage.layout import SETTINGS, generation_path, make_current
from homing.errors import CollectionError, PhotoError
from homing.extractors import Extractor, ExtractorLike, describe_images
from homing.objectives import has_objective, objective_for
from homing.photo import Photo, read_file

RELEASED_FILE_MISSING = "its released file is missing or was changed, so its gain cannot be measured"
_BATCH = 16  # photos per pass of the extractor
_COMMIT = 256  # references or releases per commit
_EARLIER_CODEBOOK = re.compile("(for codebook [0-9a-f]{12}: )+")


def migrate(
    path: str | Location,
    codebook: codebooks.CodebookLike,
    *,
    extractor: ExtractorLike | None = None,
    advance: Callable[[], None] = lambda: None,
) -> Migration:
    """Build the next generation of a collection, for another codebook. Call again to resume an interrupted migration.

    New codes are computed from the stored descriptors or, if the codebook belongs to another extractor, from the files.
    `advance` is called after each reference.
    """
    book = codebooks.load(codebook)
    extractor = None if extractor is None else extractors.load(extractor)
    with closing(_open(path)) as old, old.lock_for_writing():
        if old.codebook.fingerprint == book.fingerprint:
            raise CollectionError(f"{path} has codebook '{book.name}' ({book.fingerprint[:12]}) already")
        target = generation_path(old.root, "next")
        if not (target / SETTINGS).is_file():
            with_distractors = old.distractors is not None and codebooks.has_distractors(book)
            distractors = codebooks.bundled_distractors(book) if with_distractors else None
            create_generation(type(old), target, Parts(book, distractors))
        with closing(_open(path, "next")) as new:
            if new.codebook.fingerprint != book.fingerprint:
                raise CollectionError(
                    f"{path} is already being migrated to codebook '{new.codebook.name}' "
                    f"({new.codebook.fingerprint[:12]}); finish that migration, or delete "
                    f"{target} to start with another codebook"
                )
            return Migrator(old, new, extractor, advance).run()


def switch(path: str | Location, *, extractor: ExtractorLike | None = None, leave_missing: bool = False) -> Migration:
    """Make the next generation the current one, including references that were added in the meantime.

    Raises an error if some references could not be migrated, unless `leave_missing` is true.
    """
    network = None if extractor is None else extractors.load(extractor)
    with closing(_open(path)) as old, old.lock_for_writing(), closing(_open(path, "next")) as new:
        migrator = Migrator(old, new, network)
        done = migrator.run()
        if done.missing and not leave_missing:
            raise CollectionError(
                f"{len(done.missing):,} photos could not be migrated, the first: "
                f"{done.missing[0]}; restore their files, or continue without them: --leave-missing"
            )
        new.reserve_ids(old.last_id())
        make_current(old.root)
        # Without a lock, writers may have changed the previous generation until now. From now on, the new one has
        # references that the previous one lacks, because others add them.
        return done if old.locks_writers else migrator.run(remove_gone=False)


def delete_previous(path: str | Location) -> None:
    """Delete the generations before the current one."""
    with closing(_open(path)) as current, current.lock_for_writing():
        current.delete_previous()


def count(path: str | Location) -> int:
    """The number of references to migrate."""
    with closing(_open(path)) as old:
        return old.counts()["photos"]


def _open(path: str | Location, which: str = "current") -> Storage:
    where = location(path)
    return open_storage(Path(os.path.abspath(where)) if isinstance(where, Path) else where, which)


class Migrator:
    """Copies references and releases from one generation to the next. Run again to resume."""

    def __init__(
        self, old: Storage, new: Storage, extractor: Extractor | None, advance: Callable[[], None] = lambda: None
    ) -> None:
        self._old, self._new, self._given, self._advance = old, new, extractor, advance
        # Whether stored descriptors can be used again.
        self._same_network = old.codebook.extractor_fingerprint == new.codebook.extractor_fingerprint
        self._missing: list[str] = []  # the reason for each reference that cannot be migrated

    @cached_property
    def _extractor(self) -> Extractor:
        """The extractor of the next generation."""
        extractor = self._given or extractors.load(self._new.codebook.extractor)
        self._new.codebook.check(extractor)
        return extractor

    def run(self, *, remove_gone: bool = True) -> Migration:
        """Update the next generation to the current state of the old one, and report which gains are kept.

        `remove_gone` removes the references that the old generation lacks.
        """
        old, new = self._old, self._new
        old.refresh()
        if new.keeps_ids and new.last_id() > old.last_id():  # references that the old one lacks would be removed
            raise CollectionError(
                f"{new.path} holds references that the current generation never had: it was the current one before. "
                f"If {old.root / 'current'} was deleted, write the number of that generation into it"
            )
        self._missing.clear()
        if remove_gone:
            self._remove_gone()
        for rows in old.valid_rows():
            self._copy(rows)
        for releases in old.releases():
            self._copy_releases(releases)
        new.save_index()
        return self._report()

    def _remove_gone(self) -> None:
        """Remove references that the old generation has no more, or has under another id."""
        old, new = self._old, self._new
        for batch in new.hashes():
            ids = old.ids_of(list(batch.values()))
            gone = [
                number
                for number, sha256 in batch.items()
                if sha256 not in ids or (new.keeps_ids and ids[sha256] != number)
            ]
            if gone:
                new.remove(gone)

    def _copy(self, rows: Sequence[StoredReference]) -> None:
        """Add the references that the next generation lacks, and update the sources of the others."""
        new = self._new
        known = new.ids_of([row.sha256 for row in rows])
        sources = new.sources_and_states(list(known.values()))
        wanted = []
        for row in rows:
            if row.sha256 not in known:
                wanted.append(row)
                continue
            if (before := sources[known[row.sha256]][0]) != row.source:
                new.update_source(known[row.sha256], before, row.source)
            self._advance()
        size = len(wanted) if self._same_network else _COMMIT
        for start in range(0, len(wanted), size or 1):
            batch = wanted[start : start + size]
            if ready := self._with_new_codes(batch):
                new.insert(ready)
            for _ in batch:
                self._advance()

    def _copy_releases(self, rows: Sequence[StoredRelease]) -> None:
        """Add the releases that the next generation lacks, evaluated with its codebook."""
        new, own, wanted = self._new, self._with_new_ids(rows), []
        known = self._evaluated(own)
        for row in own:
            before = known.get(_key(row))
            same = before is not None and (before.written, before.changed) == (row.written, row.changed)
            # Releases whose file was missing are evaluated again.
            if before is None or not same or before.reason == RELEASED_FILE_MISSING:
                wanted.append(row)
        for start in range(0, len(wanted), _COMMIT):
            batch = wanted[start : start + _COMMIT]
            originals = new.descriptors(np.array(sorted({row.photo for row in batch})))
            new.insert_releases([self._reassess(row, originals[row.photo][0]) for row in batch])

    def _with_new_ids(self, rows: Sequence[StoredRelease]) -> list[StoredRelease]:
        """Releases with the ids of their references in the next generation, without those of missing ones."""
        hashes = self._old.hashes_of(sorted({row.photo for row in rows}))
        ids = self._new.ids_of(list(hashes.values()))
        return [row._replace(photo=ids[hashes[row.photo]]) for row in rows if hashes.get(row.photo) in ids]

    def _evaluated(self, rows: Sequence[StoredRelease]) -> dict[tuple[int, str, str], StoredRelease]:
        """The releases of these references in the next generation, by reference and file."""
        photos = sorted({row.photo for row in rows})
        return {_key(row): row for batch in self._new.releases(photos) for row in batch}

    def _report(self) -> Migration:
        kept: list[MigratedRelease] = []
        lost: list[MigratedRelease] = []
        unknown: list[tuple[str, MigratedRelease]] = []  # with the times of the releases
        latest: dict[str, str] = {}  # the times of the last releases by path
        for rows in self._old.releases():
            written = [row for row in self._with_new_ids(rows) if row.written]
            evaluated = self._evaluated(written)
            sources = self._new.sources_and_states(sorted({row.photo for row in written}))
            for row in written:
                latest[row.path] = max(row.changed, latest.get(row.path, ""))
                now = evaluated.get(_key(row))
                if now is None or "activated" not in (row.state, now.state):  # a lost gain can return
                    continue
                release = MigratedRelease(sources[row.photo][0], row.path, now.reason)
                if now.reason == RELEASED_FILE_MISSING:
                    unknown.append((row.changed, release))
                else:
                    (kept if now.state == "activated" else lost).append(release)
        return Migration(
            generation=self._new.path,
            codebook=self._new.codebook.name,
            photos=self._new.counts()["photos"],
            missing=self._missing,
            gain_kept=kept,
            gain_lost=lost,
            # The file of a release that a later one replaced is not missing.
            gain_unknown=[release for changed, release in unknown if changed == latest[release.released]],
        )

    def _with_new_codes(self, rows: Sequence[StoredReference]) -> list[StoredReference]:
        """References with codes of the new codebook and descriptors of its extractor."""
        if self._same_network:
            vectors = [row.vector or b"" for row in rows]
            descriptors = _as_tensor(vectors)
        else:
            rows, descriptors = self._describe(rows)
            if not rows:
                return []
            vectors = [vector.tobytes() for vector in descriptors.numpy().astype(np.float16)]
        codes = self._new.codebook.encode(descriptors)
        return [
            row._replace(code=code.tobytes(), vector=vector)
            for row, code, vector in zip(rows, codes, vectors, strict=True)
        ]

    def _describe(self, rows: Sequence[StoredReference]) -> tuple[list[StoredReference], Tensor]:
        """The references whose files can be read, and their descriptors (N, D). The others are noted as missing."""

        def read(row: StoredReference) -> Tensor | None:
            try:
                return self._network_input(row.source, row.sha256)
            except PhotoError as error:
                self._missing.append(str(error))
                return None

        readable, described = [], [torch.empty(0, self._new.codebook.dim)]
        for start in range(0, len(rows), _BATCH):
            batch = rows[start : start + _BATCH]
            found = [
                (row, each) for row, each in zip(batch, prefetch_map(read, batch), strict=True) if each is not None
            ]
            if found:
                readable += [row for row, _ in found]
                described.append(describe_images(self._extractor, [each for _, each in found]))
        return readable, torch.cat(described)

    def _network_input(self, path: str, sha256: str) -> Tensor:
        data = read_file(location(path))
        if hashlib.sha256(data).hexdigest() != sha256:
            raise PhotoError(f"{path}: the file has changed since it was indexed; restore the indexed file")
        return self._extractor.resize(Photo.decode(data, path).pixels())

    def _reassess(self, row: StoredRelease, original: np.ndarray) -> StoredRelease:
        """A release evaluated with the new codebook: one that lost its gain becomes unchanged.

        A release that lost it in an earlier migration can regain it, for example when migrating back.
        """
        was_activated = row.state == "activated" or row.vector is not None or row.reason == RELEASED_FILE_MISSING
        released = self._released_descriptor(row) if was_activated else None
        vector = None if released is None else released.numpy().astype(np.float16).tobytes()
        reason = row.reason
        if was_activated:
            reason = RELEASED_FILE_MISSING if released is None else self._why_no_gain(released, original)
        recipe = _EARLIER_CODEBOOK.sub("", row.recipe)
        if was_activated and reason is None:
            return row._replace(state="activated", reason=None, recipe=recipe, vector=vector)
        # The changed recipe name makes `activate` process it again.
        before = f"for codebook {self._old.codebook.fingerprint[:12]}: "
        return row._replace(state="unchanged", reason=reason, recipe=before + recipe, vector=vector)

    def _released_descriptor(self, row: StoredRelease) -> Tensor | None:
        """The descriptor (1, D) of a released file: the stored one or, for another extractor, one of the file."""
        if self._same_network and row.vector is not None:
            return _as_tensor([row.vector])
        try:
            return describe_images(self._extractor, [self._network_input(row.path, row.sha256)])
        except PhotoError:
            return None

    def _why_no_gain(self, released: Tensor, original: np.ndarray) -> str | None:
        """The reason why a released photo has no gain with the new codebook, None if it has gain."""
        codebook = self._new.codebook
        if not has_objective(codebook):
            return f"'{codebook.spec}' stores descriptors without compression: nothing can be gained"
        first = torch.from_numpy(original.astype(np.float32))[None]
        if int(codebook.cells(released)) != int(codebook.cells(first)):
            return "it is in another cell than its original"
        objective = objective_for(codebook, first)
        before, after = float(objective(first)), float(objective(released))
        if after > before - MIN_LOSS_DECREASE * abs(before):
            return "it is no nearer to its code in the index than its original"
        return None


def _as_tensor(vectors: Sequence[bytes]) -> Tensor:
    """Convert stored descriptors to a tensor (N, D)."""
    numbers = np.frombuffer(b"".join(vectors), np.float16)
    return torch.from_numpy(numbers.reshape(len(vectors), -1).astype(np.float32))


def _key(row: StoredRelease) -> tuple[int, str, str]:
    return row.photo, row.path, row.sha256
