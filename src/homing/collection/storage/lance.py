"""Storage in Lance: a folder on this machine or in a bucket, which any number of machines change at once.

s3://bucket/photos.lance/
  references.lance    the references: hashes, sources, codes, descriptors, and their index
  releases.lance      the releases of the references

References are inserted by their hashes, so that concurrent writers add each photo only once. Conflicting commits are
retried, so there is no lock. Every change is a version.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from threading import Lock

from homing._io.files import TEMPORARY_NAME
from homing._io.paths import Address, Location, list_names, write_file
from homing.collection.outcome import STALE_SECONDS, Findings, Version
from homing.collection.storage._lance_rows import LanceRows
from homing.collection.storage._lance_table import (
    REFERENCES,
    RELEASES,
    LanceTable,
    column_in,
    create_datasets,
    row_ids_in,
)
from homing.collection.storage.base import Storage
from homing.collection.storage.layout import CODEBOOK, DISTRACTORS, SETTINGS, Parts, delete_path
from homing.errors import CollectionError, HomingError, StorageUnavailableError
from homing.indexes.lance import (
    LanceIndex,
    cells_differ,
    check_family,
    drop_index,
    is_outdated,
    load_lance,
    refresh_index,
    unindexed_rows,
)

_SCHEMES = ("s3", "gs", "az")
_UNREADABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")  # control characters, and bytes that are not UTF-8
_IMPORTING = "importing"  # an empty file, while references are imported
_AGAIN = "run homing check --repair again"
# Rows that are not indexed are searched in memory. Up to this number or share of references, that is faster than
# reading the index from a bucket.
_MAX_UNINDEXED, _MAX_UNINDEXED_SHARE = 20_000, 0.1


class LanceStorage(LanceRows):
    """The references and releases of a generation in two Lance datasets."""

    files = (REFERENCES, RELEASES)
    keeps_ids = False  # an id is the number of a row in its dataset
    locks_writers = False
    restore_hint = "restore it from a backup, or look for an earlier version: homing search --version"

    def __init__(self, root: Location, path: Location, parts: Parts, version: int | None = None) -> None:
        super().__init__(root, path, parts, version)
        self._pinned, self._index_lock = version, Lock()
        self._index: LanceIndex | None = None
        self._indexed = 0  # the revision that the index represents

    @classmethod
    def accepts(cls, where: Location) -> bool:
        """Whether this is an address, a folder with datasets of Lance, or a new folder named *.lance."""
        if isinstance(where, Address):
            return True
        try:
            if not where.is_dir() or not any(where.iterdir()):
                return where.suffix == ".lance"
        except OSError as error:  # not readable, or the name is too long
            raise CollectionError(f"{where} cannot be read: {error.strerror}") from error
        first_generation = any((where / each).is_dir() for each in cls.files)
        return first_generation or any(where.glob(f"generation-*/{REFERENCES}"))  # if the first generation is deleted

    @classmethod
    def check_location(cls, where: Location) -> Location:
        """The absolute location. Raises an error if Lance cannot use it unchanged."""
        if not isinstance(where, Address):
            whole = os.path.abspath(where)
            if _UNREADABLE.search(whole):
                raise CollectionError(
                    f"Lance accepts only names in UTF-8 without line breaks, got {where}; choose another name"
                )
            return Path(whole)
        if where.scheme not in _SCHEMES or len(where.pure_path.parts) < 3 or set("%#?") & set(where.url):
            raise CollectionError(
                f"{where} is not an address of a collection: expected {', '.join(f'{each}://' for each in _SCHEMES)} "
                "and a folder in a bucket, without %, # or ?"
            )
        return where

    @classmethod
    def create(cls, where: Location, parts: Parts, fill: Callable[[Storage], None] | None = None) -> None:
        """Create the datasets of a generation. The settings are written last and complete it.

        A repair completes what has a codebook. With `fill`, the codebook is therefore written after all references.
        """
        load_lance()
        check_family(parts.codebook)
        for name in cls.files:
            LanceTable.refuse_if_filled(where / name)
        from_killed_init = {SETTINGS, CODEBOOK, DISTRACTORS} if fill is None else set()
        importing = set() if fill is None else {_IMPORTING}  # refused below, as another import
        names = {name for name in list_names(where) if not TEMPORARY_NAME.fullmatch(name)}
        if not names <= {*from_killed_init, *cls.files, *importing}:
            raise CollectionError(f"{where} exists and is not empty; choose another name for the collection")
        if fill is None:
            parts.write(where)
            create_datasets(where, parts.codebook)
        else:
            with _import_alone(where, (*cls.files, CODEBOOK, DISTRACTORS)):
                create_datasets(where, parts.codebook)
                fill(cls(where, where, parts))
                parts.write(where)
        parts.write_settings(where)

    @classmethod
    def open(cls, root: Location, path: Location, parts: Parts, version: int | None) -> LanceStorage:
        """Open the datasets of a generation, with its references at a version or the latest."""
        load_lance()
        return cls(root, path, parts, version)

    def reopen(self) -> LanceStorage:
        """Open the datasets once more, at the same version if one was given."""
        return LanceStorage(self.root, self.path, self.parts, self._pinned)

    def close(self) -> None:
        """Do nothing: there are no open files."""

    @classmethod
    def lock(cls, root: Location) -> AbstractContextManager[None]:  # noqa: ARG003
        """Take no lock, since conflicting commits are retried."""
        return nullcontext()

    @contextmanager
    def lock_for_writing(self) -> Iterator[None]:
        """Load the changes of other writers. A version cannot be written to."""
        self.table.refuse_if_pinned()
        with super().lock_for_writing():
            yield

    @property
    def version(self) -> int:
        """The version of the references."""
        return self.revision

    def index(self) -> LanceIndex:
        """The index of the current version; its latest rows and the distractors are searched in memory."""
        with self._index_lock:
            revision = self.revision
            if self._index is None or revision != self._indexed:
                with self.table.convert_errors("read"):
                    self._index = LanceIndex(self.codebook, self.table.dataset, self.parts.new_index())
                self._indexed = revision
            return self._index

    def save_index(self) -> None:
        """Update the index of the dataset if this process changed it and enough rows are not indexed."""
        if not self.changed:
            return
        try:
            with self.table.convert_errors("read"):
                tail, count = unindexed_rows(self.table.dataset), self.table.dataset.count_rows()
            if tail > max(_MAX_UNINDEXED, _MAX_UNINDEXED_SHARE * count):
                self.compact()
        except (CollectionError, StorageUnavailableError) as error:
            # No data is lost: unindexed rows are searched in memory, and a later job can update the index.
            logging.getLogger("homing").warning("%s: the index was not updated: %s", self.path, error)

    def searching(self) -> AbstractContextManager[None]:
        """Convert errors of Lance during a search."""
        return self.table.convert_errors("searched")

    def drop_removed_from_index(self) -> bool:
        """Update an index from which an interrupted compaction did not drop removed references."""
        self._refresh_index()
        return True

    def _refresh_index(self) -> None:
        """Add new rows to the index, and drop removed ones."""
        self.table.refuse_if_pinned()
        with self.table.convert_errors("indexed"):
            refresh_index(self.table.latest(), self.codebook)

    def compact(self, older_than: timedelta | None = None) -> None:
        """Index all references, merge small files, and delete versions older than `older_than`."""
        self.table.refuse_if_pinned()
        if self.count() and is_outdated(self.table.dataset):
            self._refresh_index()  # first: otherwise the index still returns removed rows that compaction drops
        dropped = False
        for table, columns in self.lookups:
            with table.convert_errors("compacted"):
                dataset = table.latest()
                dropped |= dataset.optimize.compact_files().fragments_removed > 0
                for column in columns:
                    if f"{column}_idx" not in {each.name for each in dataset.describe_indices()}:
                        dataset.create_scalar_index(column, "BTREE")
                dataset.optimize.optimize_indices(index_names=[f"{column}_idx" for column in columns])
                if older_than is not None:
                    dataset.cleanup_old_versions(older_than=older_than)
        if dropped and self.count():
            self._refresh_index()  # another writer may have removed more rows
        self.changed = False

    def versions(self) -> list[Version]:
        """The versions of the references, oldest first."""
        with self.table.convert_errors("read"):
            return [
                Version(each["version"], each["timestamp"], int(each["metadata"].get("total_rows", 0)))
                for each in self.table.latest().versions()
            ]

    def check(self, findings: Findings) -> bool:
        """Validate the datasets and their lookups, and find duplicates and releases without a reference."""
        for table in (self.table, self.log):
            with table.convert_errors("validated"):
                table.latest().validate()
        for table, columns in self.lookups:
            for column in columns:
                try:
                    table.rows([column], f"{column} = ''")
                except CollectionError as error:
                    repair = partial(_rebuild_lookup, table, column)
                    findings.repair_or_report("index", str(error), "rebuilt", repair, _AGAIN)
        self._check_hashes(findings)
        return True

    def _check_hashes(self, findings: Findings) -> None:
        """Find photos with several references, and releases without a reference."""
        numbers: dict[str, list[int]] = {}
        for batch in self.hashes():
            for number, sha256 in batch.items():
                numbers.setdefault(sha256, []).append(number)
        for sha256, ids in numbers.items():
            if len(ids) > 1:
                problem = f"the photo {sha256[:12]}… has {len(ids)} references"
                drop = partial(self.table.delete, row_ids_in(sorted(ids)[1:]))
                findings.repair_or_report("reference", problem, "all but the first were removed", drop, _AGAIN)
        # A writer may just be adding a reference, or removing one: younger releases are left alone.
        stale = datetime.now(timezone.utc) - timedelta(seconds=STALE_SECONDS)
        logged = self.log.rows(["photo", "changed"]).to_pylist()
        orphans = sorted({row["photo"] for row in logged if row["photo"] not in numbers and row["changed"] < stale})
        if orphans:
            problem = f"{len(orphans):,} photos have releases but no reference any more"
            delete = partial(self.log.delete, column_in("photo", orphans))
            findings.repair_or_report("release", problem, "deleted", delete, _AGAIN)

    def check_index(self, findings: Findings) -> None:
        """Check that the index can be read, and has the cells of the codebook."""
        problem = None
        try:
            with self.table.convert_errors("read"):
                if cells_differ(self.table.dataset, self.codebook):
                    problem = "the index has other cells than the codebook: it was trained again"
        except CollectionError as error:
            problem = f"the index is damaged: {error}"
        if problem is not None:
            findings.repair_or_report("index", problem, "rebuilt", self._rebuild_index, _AGAIN)

    def _rebuild_index(self) -> None:
        with self.table.convert_errors("indexed"):
            drop_index(self.table.latest())
            refresh_index(self.table.latest(), self.codebook)


def _rebuild_lookup(table: LanceTable, column: str) -> None:
    with table.convert_errors("indexed"):
        table.latest().create_scalar_index(column, "BTREE", replace=True)
    table.latest()


@contextmanager
def _import_alone(where: Location, names: Sequence[str]) -> Iterator[None]:
    """Keep other imports out, and delete these files and folders if the block fails."""
    is_new = isinstance(where, Path) and not where.exists()
    try:
        write_file(where / _IMPORTING, b"", new=True)
    except FileExistsError:
        raise CollectionError(
            f"another process is importing into {where}; if it was interrupted, delete the folder and import again"
        ) from None
    try:
        yield
    except BaseException:
        with suppress(HomingError, OSError):  # the first error matters more; the next import reports what remains
            for file in (where / name for name in (*names, _IMPORTING)):
                if file.exists():
                    delete_path(file)
            if is_new and isinstance(where, Path):
                where.rmdir()
        raise
    delete_path(where / _IMPORTING)
