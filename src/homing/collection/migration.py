"""Migrate a collection to another codebook. Both generations can be searched until the switch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from homing import codebooks, extractors
from homing._io.paths import Location, location
from homing.collection._locks import lock_for_writing, snapshot_lock
from homing.collection._transfer import Transfer
from homing.collection.folder import Folder, create_folder, open_folder
from homing.collection.generations import delete_earlier_generations, generation_path, make_current
from homing.collection.lance.folder import is_lance, open_lance
from homing.collection.lance.migration import delete_previous_lance, migrate_lance, switch_lance
from homing.collection.outcome import MigratedRelease, Migration
from homing.collection.reencode import RELEASED_FILE_MISSING, Reencoder
from homing.errors import CollectionError
from homing.extractors import Extractor, ExtractorLike


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
    if is_lance(location(path)):
        return migrate_lance(location(path), book, extractor, advance)
    root = _absolute(path)
    with _open(root) as old, lock_for_writing(old):
        if old.codebook.fingerprint == book.fingerprint:
            raise CollectionError(f"{path} has codebook '{book.name}' ({book.fingerprint[:12]}) already")
        target = generation_path(root, "next")
        if not target.exists():
            with_distractors = old.distractors is not None and codebooks.has_distractors(book)
            create_folder(target, book, codebooks.bundled_distractors(book) if with_distractors else None)
        with _open(root, "next") as new:
            if new.codebook.fingerprint != book.fingerprint:
                raise CollectionError(
                    f"{path} is already being migrated to codebook '{new.codebook.name}' "
                    f"({new.codebook.fingerprint[:12]}); finish that migration, or delete "
                    f"{target} to start with another codebook"
                )
            return _reencode(old, new, extractor, advance)


def switch(path: str | Location, *, extractor: ExtractorLike | None = None, leave_missing: bool = False) -> Migration:
    """Make the next generation the current one, including references that were added in the meantime.

    Raises an error if some references could not be migrated, unless `leave_missing` is true.
    """
    network = None if extractor is None else extractors.load(extractor)
    if is_lance(location(path)):
        return switch_lance(location(path), network, leave_missing=leave_missing)
    root = _absolute(path)
    with _open(root) as old, lock_for_writing(old), _open(root, "next") as new:
        done = _reencode(old, new, network, lambda: None)
        if done.missing and not leave_missing:
            raise CollectionError(
                f"{len(done.missing):,} photos could not be migrated, the first: "
                f"{done.missing[0]}; restore their files, or continue without them: --leave-missing"
            )
        with _transfers(old, new) as (before, after):
            after.reserve_ids(before.last_id())
        make_current(root)
    return done


def delete_previous(path: str | Location) -> None:
    """Delete the generations before the current one."""
    if is_lance(location(path)):
        delete_previous_lance(location(path))
        return
    root = _absolute(path)
    with _open(root) as current, lock_for_writing(current), snapshot_lock(root):
        delete_earlier_generations(root)


def count(path: str | Location) -> int:
    """The number of references to migrate."""
    if is_lance(location(path)):
        return open_lance(location(path)).catalog.counts()["photos"]
    with _open(_absolute(path)) as old:
        return old.catalog.counts()["photos"]


def _absolute(path: str | Location) -> Path:
    return Path(os.path.abspath(str(path)))


@contextmanager
def _open(root: Path, which: str = "current") -> Iterator[Folder]:
    folder = open_folder(root, which)
    with closing(folder.catalog):
        yield folder


@contextmanager
def _transfers(old: Folder, new: Folder) -> Iterator[tuple[Transfer, Transfer]]:
    with (
        closing(Transfer(old.path / "catalog.sqlite")) as before,
        closing(Transfer(new.path / "catalog.sqlite")) as after,
    ):
        yield before, after


def _reencode(old: Folder, new: Folder, extractor: Extractor | None, advance: Callable[[], None]) -> Migration:
    with _transfers(old, new) as (before, after):
        if after.last_id() > before.last_id():  # references that the old generation lacks would be removed
            raise CollectionError(
                f"{new.path} holds references that the current generation never had: it was the current one before. "
                f"If {old.root / 'current'} was deleted, write the number of that generation into it"
            )
        reencoder = Reencoder(old.codebook, new.codebook, extractor, advance)
        reencoder.run(before, after)
        by_gain: dict[str, list[MigratedRelease]] = {"gain_kept": [], "gain_lost": [], "gain_unknown": []}
        for rows in before.releases():
            for row in rows:
                status = after.release_status(row) if row.written else None
                if status is not None and "activated" in (row.state, status[1]):  # a lost gain can return
                    source, state, reason = status
                    gain = (
                        "gain_kept"
                        if state == "activated"
                        else "gain_unknown"
                        if reason == RELEASED_FILE_MISSING
                        else "gain_lost"
                    )
                    by_gain[gain].append(MigratedRelease(source, row.path, reason))
        return Migration(
            generation=new.path,
            codebook=new.codebook.name,
            photos=after.counts()["photos"],
            missing=reencoder.missing,
            **by_gain,
        )
