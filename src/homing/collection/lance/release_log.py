"""The releases of a collection in Lance: an append-only log.

A file that was planned and then written has two rows. Photos are identified by hash, because ids are valid in one
dataset only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, cast

import numpy as np

from homing._extras import load_extra
from homing.codebooks import Codebook
from homing.collection._blobs import to_float16
from homing.collection._transfer import ReleaseRecord
from homing.collection.lance.table import LanceTable, column_in
from homing.collection.references import ReleaseRow, State
from homing.indexes.lance import VECTOR

RELEASES = "releases.lance"
LoggedRelease = tuple[str, ReleaseRow]
"""The hash of a photo, and a planned or written release."""
ReleaseKey = tuple[str, str, str]
"""The key of a release: the hash of its photo, its path and its own hash."""


def log_schema(codebook: Codebook) -> Any:
    """The schema of the log."""
    arrow = load_extra("pyarrow", "lance")
    return arrow.schema(
        [
            *((name, arrow.string()) for name in ("photo", "state", "path", "sha256", "recipe")),
            *((name, arrow.float64()) for name in ("psnr", "ssim", "linf")),
            ("reason", arrow.string()),
            ("written", arrow.bool_()),
            ("changed", arrow.timestamp("ms", tz="UTC")),
            (VECTOR, arrow.list_(arrow.float16(), codebook.dim)),  # null unless the file is activated
        ]
    )


class ReleaseLog:
    """The release log of one collection."""

    def __init__(self, table: LanceTable, codebook: Codebook) -> None:
        self._table, self._schema = table, log_schema(codebook)

    def add(
        self,
        releases: Iterable[LoggedRelease],
        descriptors: Iterable[np.ndarray | None],
        now: datetime,
        *,
        written: bool,
    ) -> None:
        """Append planned or written releases, each with the descriptor of the released file or None."""
        self._append(
            {"photo": photo, **row._asdict(), "written": written}
            | {"changed": now, VECTOR: None if vector is None else to_float16(vector)}
            for (photo, row), vector in zip(releases, descriptors, strict=True)
        )

    def add_records(self, releases: Iterable[tuple[str, ReleaseRecord]]) -> None:
        """Append releases of another generation, re-evaluated for this one."""
        self._append(
            row._asdict()
            | {"photo": photo, "written": bool(row.written)}
            | {VECTOR: None if row.vector is None else np.frombuffer(row.vector, np.float16)}
            for photo, row in releases
        )

    def _append(self, rows: Iterable[dict[str, Any]]) -> None:
        arrow = load_extra("pyarrow", "lance")
        self._table.append(arrow.Table.from_pylist(list(rows), schema=self._schema))

    def releases(self, where: str) -> list[LoggedRelease]:
        """The releases that match a filter, latest last."""
        return [
            (row["photo"], ReleaseRow(**{name: row[name] for name in ReleaseRow._fields}))
            for row in self._rows(["photo", *ReleaseRow._fields, "changed"], where)
        ]

    def written_rows(self, hashes: Sequence[str]) -> list[dict[str, Any]]:
        """The written releases of photos as rows, with their times, latest last."""
        columns = ["photo", *ReleaseRow._fields, "changed"]
        return self._rows(columns, f"written AND {column_in('photo', hashes)}")

    def written(self, hashes: Sequence[str]) -> list[LoggedRelease]:
        """The written releases of photos, latest last."""
        return self.releases(f"written AND {column_in('photo', hashes)}")

    def _rows(self, columns: Sequence[str], where: str | None = None) -> list[dict[str, Any]]:
        rows = self._table.rows(columns, where).to_pylist()
        return sorted(rows, key=lambda row: cast(datetime, row["changed"]))  # a stable sort

    def release_records(self) -> dict[ReleaseKey, ReleaseRecord]:
        """All planned and written releases by key, with the log rows of each file merged.

        Photos are identified by the hash in the key; their ids are 0.
        """
        files: dict[ReleaseKey, ReleaseRecord] = {}
        for row in self._rows(["photo", *ReleaseRow._fields, "written", "changed", VECTOR]):
            key, vector = (row["photo"], row["path"], row["sha256"]), row[VECTOR]
            half = None if vector is None else np.asarray(vector, np.float16).tobytes()
            now, before = ReleaseRecord(**row | {"photo": 0, "vector": half}), files.get(key)
            if before is not None:
                now = now._replace(written=before.written or now.written, vector=now.vector or before.vector)
            files[key] = now
        return files

    def states(self, hashes: Sequence[str] | None = None) -> dict[str, State]:
        """The states of photos, or of all, by hash. 'activated' takes precedence: it sorts first."""
        which = "" if hashes is None else f" AND {column_in('photo', hashes)}"
        rows = self._table.rows(["photo", "state"], f"written{which}")
        least = rows.group_by("photo").aggregate([("state", "min")])
        return dict(zip(least["photo"].to_pylist(), least["state_min"].to_pylist(), strict=True))

    def descriptors(self, hashes: Sequence[str]) -> dict[str, list[np.ndarray]]:
        """The descriptors of activated files by photo hash. A file that was planned twice counts once."""
        rows = self._table.rows(["photo", "sha256", VECTOR], f"{VECTOR} IS NOT NULL AND {column_in('photo', hashes)}")
        found: dict[str, dict[str, np.ndarray]] = {}
        for row in rows.to_pylist():
            found.setdefault(row["photo"], {})[row["sha256"]] = np.asarray(row[VECTOR], dtype=np.float32)
        return {photo: list(files.values()) for photo, files in found.items()}
