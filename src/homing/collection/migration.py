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
from typing import Literal

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
from homing.collection.storage.layout import generation_path, make_current
from homing.errors import CollectionError, PhotoError
from homing.extractors import Extractor, ExtractorLike, describe_images
from homing.objectives import has_objective, objective_for
from homing.photo import Photo, read_file

RELEASED_FILE_MISSING = "its released file is missing or was changed, so its gain cannot be measured"
_BATCH = 16  # photos per pass of the extractor
_COMMIT = 256  # references or releases per commit
_EARLIER_CODEBOOK = re.compile("(for codebook [0-9a-f]{12}: )+")
ProgressCallback = Callable[[], None]


def migrate(
    path: str | Location,
    codebook: codebooks.CodebookLike,
    *,
    extractor: ExtractorLike | None = None,
    advance: ProgressCallback = lambda: None,
) -> Migration:
    """Build the next generation of a collection, for another codebook. Call again to resume an interrupted migration.

    New codes are computed from the stored descriptors or, if the codebook belongs to another extractor, from the files.
    `advance` is called after each reference.
    """
    book = codebooks.load(codebook)
    extractor = None if extractor is None else extractors.load(extractor)
    where = _absolute(path)
    with closing(open_storage(where)) as old, old.lock_for_writing():
        if old.codebook.fingerprint == book.fingerprint:
            raise CollectionError(f"{path} has codebook '{book.name}' ({book.fingerprint[:12]}) already")
        target = generation_path(old.root, "next")
        if not (target / "collection.toml").is_file():
            with_distractors = old.distractors is not None and codebooks.has_distractors(book)
            distractors = codebooks.bundled_distractors(book) if with_distractors else None
            create_generation(type(old), target, Parts(book, distractors))
        with closing(open_storage(where, "next")) as new:
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
    network, where = None if extractor is None else extractors.load(extractor), _absolute(path)
    with closing(open_storage(where)) as old, old.lock_for_writing(), closing(open_storage(where, "next")) as new:
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
    with closing(open_storage(_absolute(path))) as current, current.lock_for_writing():
        current.delete_previous()


def count(path: str | Location) -> int:
    """The number of references to migrate."""
    with closing(open_storage(_absolute(path))) as old:
        return old.counts()["photos"]


def _absolute(path: str | Location) -> Location:
    where = location(path)
    return Path(os.path.abspath(where)) if isinstance(where, Path) else where


class Migrator:
    """Copies references and releases from one generation to the next. Run again to resume."""

    def __init__(
        self, old: Storage, new: Storage, extractor: Extractor | None, advance: ProgressCallback = lambda: None
    ) -> None:
        self._old_storage, self._new_storage = old, new
        self._old, self._new = old.codebook, new.codebook
        self._given, self._advance = extractor, advance
        self.missing: list[str] = []
        """The reason for each reference that cannot be migrated."""

    @cached_property
    def extractor(self) -> Extractor:
        """The extractor of the next generation."""
        extractor = self._given or extractors.load(self._new.extractor)
        self._new.check(extractor)
        return extractor

    @property
    def same_network(self) -> bool:
        """Whether both codebooks belong to the same extractor, so that stored descriptors can be reused."""
        return self._old.extractor_fingerprint == self._new.extractor_fingerprint

    def run(self, *, remove_gone: bool = True) -> Migration:
        """Update the next generation to the current state of the old one, and report which gains are kept.

        `remove_gone` removes the references that the old generation lacks.
        """
        old, new = self._old_storage, self._new_storage
        old.refresh()
        if new.keeps_ids and new.last_id() > old.last_id():  # references that the old one lacks would be removed
            raise CollectionError(
                f"{new.path} holds references that the current generation never had: it was the current one before. "
                f"If {old.root / 'current'} was deleted, write the number of that generation into it"
            )
        self.missing.clear()
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
        old, new = self._old_storage, self._new_storage
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
        new = self._new_storage
        known = new.ids_of([row.sha256 for row in rows])
        sources = new.sources_and_states(list(known.values()))
        for row in rows:
            if row.sha256 in known and (before := sources[known[row.sha256]][0]) != row.source:
                new.update_source(known[row.sha256], before, row.source)
        wanted = [row for row in rows if row.sha256 not in known]
        self._report_done(len(rows) - len(wanted))
        size = len(wanted) if self.same_network else _COMMIT
        for start in range(0, len(wanted), size or 1):
            batch = wanted[start : start + size]
            if ready := self._with_new_codes(batch):
                new.insert(ready)
            self._report_done(len(batch))

    def _copy_releases(self, rows: Sequence[StoredRelease]) -> None:
        """Add the releases that the next generation lacks, evaluated with its codebook."""
        new = self._new_storage
        own = self._with_new_ids(rows)
        known = {_key(row): row for batch in new.releases(sorted({row.photo for row in own})) for row in batch}
        wanted = []
        for row in own:
            before = known.get(_key(row))
            # Releases whose file was missing are evaluated again.
            same = before is not None and (before.written, before.changed) == (row.written, row.changed)
            if before is None or not same or before.reason == RELEASED_FILE_MISSING:
                wanted.append(row)
        for start in range(0, len(wanted), _COMMIT):
            batch = wanted[start : start + _COMMIT]
            originals = new.descriptors(np.array(sorted({row.photo for row in batch})))
            new.insert_releases([self._reassess(row, originals[row.photo][0]) for row in batch])

    def _with_new_ids(self, rows: Sequence[StoredRelease]) -> list[StoredRelease]:
        """Releases with the ids of their references in the next generation, without those of missing ones."""
        hashes = self._old_storage.hashes_of(sorted({row.photo for row in rows}))
        ids = self._new_storage.ids_of(list(hashes.values()))
        return [row._replace(photo=ids[hashes[row.photo]]) for row in rows if hashes.get(row.photo) in ids]

    def _report(self) -> Migration:
        old, new = self._old_storage, self._new_storage
        by_gain: dict[str, list[MigratedRelease]] = {"gain_kept": [], "gain_lost": [], "gain_unknown": []}
        for rows in old.releases():
            written = [row for row in self._with_new_ids(rows) if row.written]
            photos = sorted({row.photo for row in written})
            evaluated = {_key(row): row for batch in new.releases(photos) for row in batch}
            sources = new.sources_and_states(photos)
            for row in written:
                now = evaluated.get(_key(row))
                if now is not None and "activated" in (row.state, now.state):  # a lost gain can return
                    source, _ = sources[row.photo]
                    by_gain[_gain(now)].append(MigratedRelease(source, row.path, now.reason))
        return Migration(
            generation=new.path,
            codebook=new.codebook.name,
            photos=new.counts()["photos"],
            missing=self.missing,
            **by_gain,
        )

    def _report_done(self, count: int) -> None:
        for _ in range(count):
            self._advance()

    def _with_new_codes(self, rows: Sequence[StoredReference]) -> list[StoredReference]:
        """References with codes of the new codebook and descriptors of its extractor."""
        if self.same_network:
            vectors = [row.vector or b"" for row in rows]
            descriptors = _as_tensor(vectors)
        else:
            rows, descriptors = self._describe(rows)
            if not rows:
                return []
            vectors = [vector.tobytes() for vector in descriptors.numpy().astype(np.float16)]
        codes = self._new.encode(descriptors)
        return [
            row._replace(code=code.tobytes(), vector=vector)
            for row, code, vector in zip(rows, codes, vectors, strict=True)
        ]

    def _describe(self, rows: Sequence[StoredReference]) -> tuple[list[StoredReference], Tensor]:
        """The references whose files can be read, and their descriptors (N, D)."""
        readable, described = [], [torch.empty(0, self._new.dim)]
        for start in range(0, len(rows), _BATCH):
            batch = rows[start : start + _BATCH]
            inputs = prefetch_map(lambda row: self._network_input(row.source, row.sha256), batch)
            found = [(row, each) for row, each in zip(batch, inputs, strict=True) if each is not None]
            if found:
                readable += [row for row, _ in found]
                described.append(describe_images(self.extractor, [each for _, each in found]))
        return readable, torch.cat(described)

    def _network_input(self, source: str, sha256: str) -> Tensor | None:
        """The network input of a file, None (and noted as missing) if it is not the indexed one."""
        try:
            return self._read_network_input(source, sha256)
        except PhotoError as error:
            self.missing.append(str(error))
            return None

    def _read_network_input(self, path: str, sha256: str) -> Tensor:
        data = read_file(location(path))
        if hashlib.sha256(data).hexdigest() != sha256:
            raise PhotoError(f"{path}: the file has changed since it was indexed; restore the indexed file")
        return self.extractor.resize(Photo.decode(data, path).pixels())

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
        before = f"for codebook {self._old.fingerprint[:12]}: "
        return row._replace(state="unchanged", reason=reason, recipe=before + recipe, vector=vector)

    def _released_descriptor(self, row: StoredRelease) -> Tensor | None:
        """The descriptor (1, D) of a released file: the stored one or, for another extractor, one of the file."""
        if self.same_network and row.vector is not None:
            return _as_tensor([row.vector])
        try:
            return describe_images(self.extractor, [self._read_network_input(row.path, row.sha256)])
        except PhotoError:
            return None

    def _why_no_gain(self, released: Tensor, original: np.ndarray) -> str | None:
        """The reason why a released photo has no gain with the new codebook, None if it has gain."""
        codebook = self._new
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


def _gain(row: StoredRelease) -> Literal["gain_kept", "gain_lost", "gain_unknown"]:
    if row.state == "activated":
        return "gain_kept"
    return "gain_unknown" if row.reason == RELEASED_FILE_MISSING else "gain_lost"
