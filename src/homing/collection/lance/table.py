"""One Lance dataset at a place: rows are looked for, appended, changed and removed, and what goes wrong is said."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Lock
from typing import Any

from homing._places import Address, Place, in_a_line
from homing.errors import AwayError, CollectionError
from homing.indexes.lance import load_lance


class _NoDatasetError(CollectionError):
    """What lies there is none, or is damaged."""


_VERSIONS = range(1, 1 << 64)  # that Lance can count
CREATED = "_row_created_at_version"  # as Lance calls it
_TRIES = 50  # of a commit: whoever comes second to change the same rows begins again


class Table:
    """A dataset as it was when it was last looked at; safe to use from several threads."""

    def __init__(self, where: Place, version: int | None = None) -> None:
        self._where, self._version, self._lock = where, version, Lock()
        if version is not None and version not in _VERSIONS:
            raise CollectionError(f"{where} has no version {version}: they are counted from 1 on")
        try:
            with self.telling("opened"):
                self._dataset = self._opened()
        except CollectionError as error:
            if version is not None:
                raise CollectionError(f"version {version} of {where} is not there, or was forgotten") from error
            raise _NoDatasetError(str(error)) from error

    def _opened(self, session: Any = None) -> Any:
        options = _options(self._where)
        return load_lance().dataset(_uri(self._where), version=self._version, storage_options=options, session=session)

    @staticmethod
    def refuse_if_filled(where: Place) -> None:
        """Nothing is made over rows that somebody has."""
        if where.exists():
            with suppress(_NoDatasetError):
                if count := Table(where).dataset.count_rows():
                    raise CollectionError(
                        f"{where} holds {count:,} rows already, perhaps of a collection whose collection.toml is gone; "
                        "homing check COLLECTION --repair puts that back, or choose another name"
                    )

    @staticmethod
    def create(where: Place, schema: Any) -> None:
        """A new, empty dataset, whose rows keep their numbers for good; in place of what a kill left of another."""
        Table.refuse_if_filled(where)
        if where.exists():
            with suppress(_NoDatasetError):
                if Table(where).dataset.schema == schema:
                    return
        with _telling(where, "made"):
            load_lance().write_dataset(
                schema.empty_table(),
                _uri(where),
                mode="overwrite",
                storage_options=_options(where),
                enable_stable_row_ids=True,
            )

    @property
    def dataset(self) -> Any:
        """The dataset, of the version last looked at."""
        return self._dataset

    def latest(self) -> Any:
        """The dataset as it is now, whoever changed it; one that was opened at a version stays there."""
        with self._lock, self.telling("read"):
            # Another object: others may just be reading from the one there.
            if self._version is None and self._dataset.latest_version != self._dataset.version:
                self._dataset = self._opened(self._dataset.session())
            return self._dataset

    def rows(self, columns: Sequence[str], where: str | None = None) -> Any:
        """The rows for which a condition holds, as a table of these columns."""
        with self.telling("read"):
            return self._dataset.scanner(columns=list(columns), filter=where).to_table()

    def pieces(self, columns: Sequence[str], where: str | None = None, size: int = 10_000) -> Iterator[Any]:
        """The same, some rows at a time."""
        with self.telling("read"):
            yield from self._dataset.scanner(columns=list(columns), filter=where, batch_size=size).to_batches()

    def append(self, rows: Any) -> None:
        """Put rows behind the others."""
        with self._changing() as dataset:
            dataset.insert(rows, mode="append")

    def insert_new(self, rows: Any, key: str) -> int | None:
        """Put those of the rows in whose key no other row has; says in which version they came, None if none did."""
        with self._changing() as dataset:
            merge = dataset.merge_insert(key).when_not_matched_insert_all().conflict_retries(_TRIES)
            return int(dataset.version) if merge.execute(rows)["num_inserted_rows"] else None

    def update(self, values: Mapping[str, str], where: str) -> int:
        """Give rows other values; says how many."""
        with self._changing() as dataset:
            changes = {name: quoted(value) for name, value in values.items()}
            return int(dataset.update(changes, where=where, conflict_retries=_TRIES)["num_rows_updated"])

    def delete(self, where: str) -> None:
        """Remove rows."""
        with self._changing() as dataset:
            dataset.delete(where, conflict_retries=_TRIES)

    @contextmanager
    def _changing(self) -> Iterator[Any]:
        self.refuse_if_old()
        with self._lock, self.telling("changed"):
            changed = self._opened(self._dataset.session())
            yield changed
            self._dataset = changed

    def refuse_if_old(self) -> None:
        """An earlier version can be looked at, and no more."""
        if self._version is not None:
            raise CollectionError(f"version {self._version} of {self._where} is as it was; open the latest")

    def telling(self, what: str) -> AbstractContextManager[None]:
        """Whatever Lance raises is told in one line."""
        return _telling(self._where, what)


@contextmanager
def _telling(where: Place, what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:  # of Lance, with a trace of its own behind the first line
        _refuse_if_away(where)
        raise CollectionError(f"{where} cannot be {what}: {in_a_line(error).partition(', /home/')[0][:300]}") from error


def _refuse_if_away(where: Place) -> None:
    """Ask whether anybody answers there at all: Lance's words do not tell that from damage."""
    try:
        where.exists()
    except OSError as error:
        raise AwayError(
            f"{where} cannot be reached: {error.strerror}; what was done is kept, the same command continues"
        ) from error


def quoted(text: str) -> str:
    """A text as it stands in a condition."""
    return "'" + text.replace("'", "''") + "'"


def one_of(column: str, values: Sequence[str] | Sequence[int]) -> str:
    """The condition that a column holds one of these values."""
    if not values:
        return "false"
    return f"{column} IN ({', '.join(quoted(each) if isinstance(each, str) else str(each) for each in values)})"


def numbered(ids: Sequence[int]) -> str:
    """The condition that rows have these ids; what can be none is passed over."""
    return one_of("_rowid", [number - 1 for number in ids if 0 < number < 1 << 63])


def _uri(where: Place) -> str:
    return where.full if isinstance(where, Address) else os.path.abspath(where)


def _options(where: Place) -> dict[str, str]:
    """What Lance does not find in the environment by itself: that a server of one's own speaks no TLS."""
    plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    return {"allow_http": "true"} if isinstance(where, Address) and plain else {}
