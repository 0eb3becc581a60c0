"""The truth about a collection in Lance: one dataset of references, and one of what was released of them.

Answers what the catalogue of a folder does. References are added by their hashes, so that many may add at once and each
photo is there once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np
import torch

from homing._extras import load_extra
from homing._places import Place
from homing.codebooks import Codebook
from homing.collection.catalogue import NewPhotos, Planned, ReleaseRow, State
from homing.collection.lance.log import RELEASES, ReleaseLog, log_schema
from homing.collection.lance.table import CREATED, Table, numbered, one_of, quoted
from homing.errors import GoneError
from homing.indexes.lance import CODE, VECTOR, ids_of, lists_of, matrix_of

REFERENCES = "references.lance"
_TOGETHER = 5_000  # references that one condition names


def schemas(codebook: Codebook) -> dict[str, Any]:
    """What the two datasets of a collection hold."""
    arrow = load_extra("pyarrow", "lance")
    code, turned = arrow.list_(arrow.uint8(), codebook.code_size), arrow.list_(arrow.float32(), codebook.dim)
    texts = [(name, arrow.string()) for name in ("sha256", "source")]
    added = ("added", arrow.timestamp("ms", tz="UTC"))
    return {
        REFERENCES: arrow.schema([*texts, added, (CODE, code), (VECTOR, turned)]),
        RELEASES: log_schema(codebook),
    }


class LanceCatalogue:
    """Which photos there are, and what was released of them; safe to use from several threads, and many machines."""

    def __init__(self, where: Place, codebook: Codebook, version: int | None = None) -> None:
        self._codebook, self._schema = codebook, schemas(codebook)[REFERENCES]
        self.references = Table(where / REFERENCES, version)
        self.releases = Table(where / RELEASES)
        self.log = ReleaseLog(self.releases, codebook)
        self.changed = False  # by this one, since it was opened

    @property
    def lookups(self) -> list[tuple[Table, tuple[str, ...]]]:
        """Both datasets, and the columns by whose values their rows are looked for."""
        return [(self.references, ("sha256", "source")), (self.releases, ("photo", "sha256"))]

    def close(self) -> None:
        """Nothing is held."""

    def look_again(self) -> None:
        """See what others did since."""
        self.references.latest()
        self.releases.latest()

    @property
    def revision(self) -> int:
        """A number that grows with every change to the references, whoever makes it."""
        return int(self.references.latest().version)

    def find(self, sha256: str) -> int | None:
        """The reference with this file hash."""
        return next(iter(self.ids_of([sha256]).values()), None)

    def ids_of(self, hashes: Sequence[str]) -> dict[str, int]:
        """The ids of photos, by their hashes."""
        return {sha256: ids[0][0] for sha256, ids in self._all_ids_of(hashes).items()}

    def _all_ids_of(self, hashes: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
        """The ids of each photo, with the versions they came in: one, but where two writers have just added it."""
        rows = self.references.rows(["_rowid", "sha256", CREATED], one_of("sha256", hashes))
        found: dict[str, list[tuple[int, int]]] = {}
        columns = (ids_of(rows).tolist(), rows["sha256"].to_pylist(), rows[CREATED].to_pylist())
        for number, sha256, version in sorted(zip(*columns, strict=True)):
            found.setdefault(sha256, []).append((number, version))
        return found

    def hashes_of(self, ids: Sequence[int]) -> dict[int, str]:
        """The hashes of photos, by their ids."""
        rows = self.references.rows(["_rowid", "sha256"], numbered(ids))
        return dict(zip(ids_of(rows).tolist(), rows["sha256"].to_pylist(), strict=True))

    def find_released(self, sha256: str) -> int | None:
        """The reference of which a file with this hash was released."""
        photos = [photo for photo, _ in self.log.releases(f"sha256 = {quoted(sha256)}")]
        return next(iter(self.ids_of(photos).values()), None)

    def add(self, photos: NewPhotos, *, instead_of: Sequence[int] = ()) -> list[int | None]:
        """Record references, all or none; gives the id of each, None where it was known.

        What they come `instead_of` is removed afterwards.
        """
        known = self.ids_of(photos.hashes)
        firsts = {sha256: place for place, sha256 in reversed(list(enumerate(photos.hashes))) if sha256 not in known}
        version = None
        if firsts:
            version = self.references.insert_new(self._new_rows(photos, sorted(firsts.values())), "sha256")
            self.changed = True
        there = self._all_ids_of(list(firsts))
        # Whoever committed second sees both, and takes its own back; after a kill a repair does.
        if twice := [number for ids in there.values() for number, _ in ids[1:]]:
            self.references.delete(numbered(twice))
        if instead_of:
            self.remove(instead_of)
        # Where somebody else was first, the row is theirs.
        ours = {sha256: ids[0][0] for sha256, ids in there.items() if ids[0][1] == version}
        return [ours.get(sha256) if firsts.get(sha256) == place else None for place, sha256 in enumerate(photos.hashes)]

    def _new_rows(self, photos: NewPhotos, places: list[int]) -> Any:
        descriptors = torch.from_numpy(np.asarray(photos.descriptors)[places])
        values = {
            "sha256": [photos.hashes[place] for place in places],
            "source": [photos.sources[place] for place in places],
            "added": [_now()] * len(places),
            CODE: lists_of(np.asarray(photos.codes)[places]),
            VECTOR: lists_of(self._codebook.turn(descriptors)),
        }
        return load_extra("pyarrow", "lance").table(values, schema=self._schema)

    def remove(self, ids: Sequence[int]) -> list[tuple[int, str, str | None]]:
        """Remove references with all that is known of them.

        Gives the id of each that was there, its source, and the file that was released of it last.
        """
        pieces = (ids[start : start + _TOGETHER] for start in range(0, len(ids), _TOGETHER))
        return [each for some in pieces for each in self._remove(some)]

    def _remove(self, ids: Sequence[int]) -> list[tuple[int, str, str | None]]:
        rows = self.references.rows(["_rowid", "sha256", "source"], numbered(ids))
        hashes = rows["sha256"].to_pylist()
        if not hashes:
            return []
        last = {photo: row.path for photo, row in self.log.written(hashes)}  # the latest comes last
        # In this order: a kill in between leaves a passive reference, which the same call removes.
        self.releases.delete(one_of("photo", hashes))
        self.references.delete(numbered(ids))
        self.changed = True
        found = zip(ids_of(rows).tolist(), rows["source"].to_pylist(), hashes, strict=True)
        return [(number, source, last.get(sha256)) for number, source, sha256 in sorted(found)]

    def move(self, photo: int, old: str, new: str) -> bool:
        """Say where the file of a reference lies now; False if it was said before."""
        sha256 = self.hashes_of([photo]).get(photo, "")
        same = f"sha256 = {quoted(sha256)} AND source = {quoted(old)}"
        return self.references.update({"source": new}, same) > 0

    def existing(self, ids: Sequence[int]) -> list[int]:
        """Those of the ids that references have."""
        return list(self.hashes_of(ids))

    def at(self, source: str) -> list[tuple[int, str]]:
        """The ids and hashes of references with this source."""
        rows = self.references.rows(["_rowid", "sha256"], f"source = {quoted(source)}")
        return sorted(zip(ids_of(rows).tolist(), rows["sha256"].to_pylist(), strict=True))

    def below(self, folder: str) -> list[int]:
        """The ids of references whose source lies in this folder, at any depth."""
        inside = folder.rstrip(os.sep)
        first, behind = inside + os.sep, inside + chr(ord(os.sep) + 1)
        rows = self.references.rows(["_rowid"], f"source >= {quoted(first)} AND source < {quoted(behind)}")
        return sorted(ids_of(rows).tolist())

    def passive(self) -> list[tuple[str, str]]:
        """The sources and hashes of references of which nothing was released."""
        released = self.log.states()
        return [
            (row["source"], row["sha256"])
            for piece in self.references.pieces(["source", "sha256"])
            for row in piece.to_pylist()
            if row["sha256"] not in released
        ]

    def outermost(self) -> tuple[str, str]:
        """The first and the last source in the order of their names."""
        ends = [
            end
            for piece in self.references.pieces(["source"])
            if (sources := piece["source"].to_pylist())
            for end in (min(sources), max(sources))
        ]
        return min(ends, default=""), max(ends, default="")

    def plan_releases(self, releases: Sequence[Planned], descriptors: Sequence[np.ndarray | None]) -> None:
        """Say which files are about to be written, so that a crash leaves none behind that nobody knows.

        Each has the descriptor of what is released, if it is another than that of the original.
        """
        self._note(releases, descriptors, written=False)

    def confirm_releases(self, releases: Sequence[Planned]) -> None:
        """Say that the planned files are on disk; where that was said before, nothing is written."""
        hashes = self.hashes_of([photo for photo, _ in releases])
        done = {(photo, row.path, row.sha256) for photo, row in self.log.written(list(hashes.values()))}
        new = [each for each in releases if (hashes.get(each[0]), each[1].path, each[1].sha256) not in done]
        if new:
            self._note(new, [None] * len(new), written=True)

    def _note(self, releases: Sequence[Planned], descriptors: Sequence[np.ndarray | None], *, written: bool) -> None:
        self.references.latest()  # somebody may have removed them
        hashes = self.hashes_of([photo for photo, _ in releases])
        there = [place for place, (photo, _) in enumerate(releases) if photo in hashes]
        if there:
            rows = [(hashes[releases[place][0]], releases[place][1]) for place in there]
            self.log.note(rows, [descriptors[place] for place in there], _now(), written=written)
            self.changed = True

    def release(self, photo: int, path: str | None, sha256: str) -> ReleaseRow | None:
        """What was released, or planned to be, of a photo into this file, or into any (the last), with this hash."""
        hashes = list(self.hashes_of([photo]).values())
        here = "" if path is None else f" AND path = {quoted(path)}"
        rows = self.log.releases(f"{one_of('photo', hashes)} AND sha256 = {quoted(sha256)}{here}")
        return rows[-1][1] if rows else None

    def last_release(self, photo: int) -> ReleaseRow | None:
        """What was released of a photo last, and is known to be on disk; the activated file, if there is one."""
        rows = [row for _, row in self.log.written(list(self.hashes_of([photo]).values()))]
        activated = [row for row in rows if row.state == "activated"]
        return (activated or rows)[-1] if rows else None

    def describe(self, photo: int) -> tuple[str, State]:
        """The source of a reference, and its state: passive, activated or unchanged."""
        return self.describe_all([photo])[photo]

    def describe_all(self, ids: Sequence[int]) -> dict[int, tuple[str, State]]:
        """The source and the state of each of these references, which are distinct."""
        rows = self.references.rows(["_rowid", "sha256", "source"], numbered(ids))
        hashes = rows["sha256"].to_pylist()
        if len(hashes) < len(ids):
            gone = min(set(ids) - set(ids_of(rows).tolist()))
            raise GoneError(f"the catalogue has no reference {gone}, but the index does")
        states = self.log.states(hashes)
        found = zip(ids_of(rows).tolist(), rows["source"].to_pylist(), hashes, strict=True)
        return {number: (source, states.get(sha256, "passive")) for number, source, sha256 in found}

    def descriptors(self, ids: np.ndarray) -> dict[int, np.ndarray]:
        """The descriptors (P, D) of distinct photos that have any: the original's, then those of activated files."""
        rows = self.references.rows(["_rowid", "sha256", VECTOR], numbered(ids.tolist()))
        if not len(rows):
            return {}
        originals = self._codebook.quantiser.turn_back(np.ascontiguousarray(matrix_of(rows[VECTOR])))
        hashes = rows["sha256"].to_pylist()
        released = self.log.descriptors(hashes)
        return {
            number: np.stack([original, *released.get(sha256, [])])
            for number, sha256, original in zip(ids_of(rows).tolist(), hashes, originals, strict=True)
        }

    def counts(self) -> dict[str, int]:
        """How many references there are in each state, and in all under `photos`."""
        states = list(self.log.states().values())
        return {
            "photos": int(self.references.dataset.count_rows()),
            "activated": states.count("activated"),
            "unchanged": states.count("unchanged"),
        }


def _now() -> datetime:
    return datetime.now(timezone.utc)
