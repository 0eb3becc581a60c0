"""A Lance dataset: look up, append, update and delete rows, with Lance's errors converted to ours; the release log."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from threading import Lock
from typing import Any, cast

import numpy as np

from homing._imports import load_extra
from homing._io.paths import Address, Location, one_line
from homing.codebooks import Codebook
from homing.collection.references import State, StoredRelease, format_time, parse_time
from homing.errors import CollectionError, StorageUnavailableError
from homing.indexes.lance import CODE, VECTOR, load_lance


class _NoDatasetError(CollectionError):
    """The location has no dataset, or a damaged one."""


REFERENCES, RELEASES = "references.lance", "releases.lance"
_VERSIONS = range(1, 1 << 64)  # version numbers that Lance supports
CREATED = "_row_created_at_version"  # Lance's own column name
_COMMIT_RETRIES = 50  # the second of two writers that change the same rows retries its commit


class LanceTable:
    """A dataset at the version that was last loaded. Thread-safe."""

    def __init__(self, where: Location, version: int | None = None) -> None:
        self._where, self._version, self._lock = where, version, Lock()
        if version is not None and version not in _VERSIONS:
            raise CollectionError(f"{where} has no version {version}: versions are counted from 1")
        try:
            with self.convert_errors("opened"):
                self.dataset = self._open()
        except CollectionError as error:
            if version is not None:
                raise CollectionError(f"version {version} of {where} does not exist, or was deleted") from error
            raise _NoDatasetError(str(error)) from error

    def _open(self, session: Any = None) -> Any:
        options = _options(self._where)
        return load_lance().dataset(_uri(self._where), version=self._version, storage_options=options, session=session)

    @staticmethod
    def refuse_if_filled(where: Location) -> None:
        """Raise an error if there is a dataset with rows, which must not be overwritten."""
        with suppress(_NoDatasetError):
            if where.exists() and (count := LanceTable(where).dataset.count_rows()):
                raise CollectionError(
                    f"{where} already holds {count:,} rows, perhaps of a collection without collection.toml; "
                    "restore it with: homing check COLLECTION --repair, or choose another name; "
                    "if an import was interrupted, delete the folder and import again"
                )

    @staticmethod
    def create(where: Location, schema: Any) -> None:
        """Create an empty dataset with stable row ids, replacing what an interrupted creation left."""
        LanceTable.refuse_if_filled(where)
        with suppress(_NoDatasetError):
            if where.exists() and LanceTable(where).dataset.schema == schema:
                return
        with _convert_errors(where, "created"):
            options = {"storage_options": _options(where), "enable_stable_row_ids": True}
            load_lance().write_dataset(schema.empty_table(), _uri(where), mode="overwrite", **options)

    def latest(self) -> Any:
        """Load the latest version, with the changes of all writers. A table opened at a version stays at it."""
        with self._lock, self.convert_errors("read"):
            # Use a new object, because other threads may be reading from the existing one.
            if self._version is None and self.dataset.latest_version != self.dataset.version:
                self.dataset = self._open(self.dataset.session())
            return self.dataset

    def rows(self, columns: Sequence[str], where: str | None = None) -> Any:
        """The rows that match a filter, as a table with these columns."""
        with self.convert_errors("read"):
            return self.dataset.scanner(columns=list(columns), filter=where).to_table()

    def records(self, columns: Sequence[str], where: str) -> list[dict[str, Any]]:
        """The rows that match a filter: these columns and the `id`, in order of id."""
        found = self.rows(["_rowid", *columns], where).to_pylist()
        return sorted(({**row, "id": row["_rowid"] + 1} for row in found), key=lambda row: cast(int, row["id"]))

    def batches(self, columns: Sequence[str], size: int = 10_000) -> Iterator[Any]:
        """Yield batches of all rows, with these columns."""
        with self.convert_errors("read"):
            yield from self.dataset.scanner(columns=list(columns), batch_size=size).to_batches()

    def insert_new(self, rows: Any, key: str) -> int | None:
        """Insert the rows whose key is new. Returns the version that added them, None if there were none."""
        with self._modify() as dataset:
            merge = dataset.merge_insert(key).when_not_matched_insert_all().conflict_retries(_COMMIT_RETRIES)
            return int(dataset.version) if merge.execute(rows)["num_inserted_rows"] else None

    def replace(self, rows: Any, key: str) -> None:
        """Replace the rows with the same keys; they keep their ids."""
        with self._modify() as dataset:
            dataset.merge_insert(key).when_matched_update_all().conflict_retries(_COMMIT_RETRIES).execute(rows)

    def update(self, values: Mapping[str, str], where: str) -> int:
        """Set columns, to values in SQL, in the rows that match a filter. Returns the number of rows."""
        with self._modify() as dataset:
            changed = dataset.update(dict(values), where=where, conflict_retries=_COMMIT_RETRIES)
            return int(changed["num_rows_updated"])

    def delete(self, where: str) -> None:
        """Delete the rows that match a filter."""
        with self._modify() as dataset:
            dataset.delete(where, conflict_retries=_COMMIT_RETRIES)

    @contextmanager
    def _modify(self) -> Iterator[Any]:
        self.refuse_if_pinned()
        with self._lock, self.convert_errors("changed"):
            changed = self._open(self.dataset.session())
            yield changed
            self.dataset = changed

    def refuse_if_pinned(self) -> None:
        """Raise an error if the table is opened at a version, which is read-only."""
        if self._version is not None:
            raise CollectionError(f"version {self._version} of {self._where} is read-only; open the latest version")

    def convert_errors(self, what: str) -> AbstractContextManager[None]:
        """Convert exceptions of Lance to a CollectionError of one line."""
        return _convert_errors(self._where, what)


class ReleaseLog(LanceTable):
    """The planned and written releases of a generation, an append-only log.

    A file that was planned and then written has two rows. Photos are identified by hash, because ids are valid in one
    dataset only.
    """

    def add(self, releases: Iterable[StoredRelease], hashes: Mapping[int, str]) -> None:
        """Append releases. `hashes` has those of their references."""
        rows = [
            row._asdict()
            | {"photo": hashes[row.photo], "written": bool(row.written), "changed": parse_time(row.changed)}
            | {VECTOR: None if row.vector is None else np.frombuffer(row.vector, np.float16)}
            for row in releases
        ]
        table = load_extra("pyarrow", "lance").Table.from_pylist(rows, schema=self.dataset.schema)
        with self._modify() as dataset:
            dataset.insert(table, mode="append")

    def stored(self, ids: Mapping[str, int], where: str | None = None, *, vectors: bool = True) -> list[StoredRelease]:
        """The releases of the references with these ids by hash, the rows of each file merged, latest last.

        `where` filters the rows that are read, which have no descriptors without `vectors`.
        """
        files: dict[tuple[int, str, str], StoredRelease] = {}
        columns = [*StoredRelease._fields[:-1], *([VECTOR] if vectors else [])]
        rows = [row for row in self.rows(columns, where).to_pylist() if row["photo"] in ids]
        for row in sorted(rows, key=lambda row: cast(datetime, row["changed"])):  # a stable sort
            vector = row.pop(VECTOR, None)
            now = StoredRelease(**row)._replace(
                photo=ids[row["photo"]],
                written=int(row["written"]),
                changed=format_time(row["changed"]),
                vector=None if vector is None else np.asarray(vector, np.float16).tobytes(),
            )
            key = now.photo, now.path, now.sha256
            if (before := files.pop(key, None)) is not None:
                now = now._replace(written=max(before.written, now.written), vector=now.vector or before.vector)
            files[key] = now
        return list(files.values())

    def states(self, hashes: Sequence[str] | None = None) -> dict[str, State]:
        """The states of photos, or of all, by hash. 'activated' takes precedence: it sorts first."""
        which = "" if hashes is None else f" AND {column_in('photo', hashes)}"
        rows = self.rows(["photo", "state"], f"written{which}")
        least = rows.group_by("photo").aggregate([("state", "min")])
        return dict(zip(least["photo"].to_pylist(), least["state_min"].to_pylist(), strict=True))

    def descriptors(self, hashes: Sequence[str]) -> dict[str, list[np.ndarray]]:
        """The descriptors of activated files by photo hash. A file that was planned twice counts once."""
        rows = self.rows(["photo", "sha256", VECTOR], f"{VECTOR} IS NOT NULL AND {column_in('photo', hashes)}")
        found: dict[str, dict[str, np.ndarray]] = {}
        for row in rows.to_pylist():
            found.setdefault(row["photo"], {})[row["sha256"]] = np.asarray(row[VECTOR], dtype=np.float32)
        return {photo: list(files.values()) for photo, files in found.items()}


def schemas(codebook: Codebook) -> dict[str, Any]:
    """The schemas of the two datasets of a generation."""
    arrow = load_extra("pyarrow", "lance")
    text, real, time = arrow.string(), arrow.float64(), arrow.timestamp("ms", tz="UTC")
    references = {
        **dict.fromkeys(("sha256", "source"), text),
        "added": time,
        CODE: arrow.list_(arrow.uint8(), codebook.code_size),
        VECTOR: arrow.list_(arrow.float32(), codebook.dim),
    }
    releases = {
        **dict.fromkeys(("photo", "state", "path", "sha256", "recipe"), text),
        **dict.fromkeys(("psnr", "ssim", "linf"), real),
        "reason": text,
        "written": arrow.bool_(),
        "changed": time,
        VECTOR: arrow.list_(arrow.float16(), codebook.dim),  # null unless the file is activated
    }
    return {REFERENCES: arrow.schema(references), RELEASES: arrow.schema(releases)}


def create_datasets(where: Location, codebook: Codebook) -> None:
    """Create the two datasets of a generation, without rows."""
    for name, schema in schemas(codebook).items():
        LanceTable.create(where / name, schema)


@contextmanager
def _convert_errors(where: Location, what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:  # from Lance, with its own stack trace after the first line
        try:
            where.exists()  # Lance's errors do not distinguish a storage that is down from damage
        except OSError as down:
            problem = f"{where} cannot be reached: {down.strerror}"
            raise StorageUnavailableError(
                f"{problem}; finished work is saved, run the same command again to resume"
            ) from down
        raise CollectionError(f"{where} cannot be {what}: {one_line(error).partition(', /home/')[0][:300]}") from error


def quoted(text: str) -> str:
    """Quote a text for a filter."""
    return "'" + text.replace("'", "''") + "'"


def column_in(column: str, values: Sequence[str] | Sequence[int]) -> str:
    """The filter that a column has one of these values."""
    if not values:
        return "false"
    return f"{column} IN ({', '.join(quoted(each) if isinstance(each, str) else str(each) for each in values)})"


def row_ids_in(ids: Sequence[int]) -> str:
    """The filter for rows with these ids. Ignores numbers that cannot be ids."""
    return column_in("_rowid", [number - 1 for number in ids if 0 < number < 1 << 63])


def _uri(where: Location) -> str:
    return where.url if isinstance(where, Address) else os.path.abspath(where)


def _options(where: Location) -> dict[str, str]:
    """Storage options that Lance does not read from the environment: plain HTTP for a custom endpoint."""
    plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    return {"allow_http": "true"} if isinstance(where, Address) and plain else {}
