"""From one codebook to another, for collections in Lance: the next generation is built beside the current one.

References are known by their hashes in both. Their ids are the next dataset's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from homing._places import Place
from homing.codebooks import Codebook
from homing.collection._carrying import GONE, Carrying
from homing.collection._transfer import PhotoRow, SentOut
from homing.collection.catalogue import NewPhotos
from homing.collection.generations import forget_previous, generation, make_current, place_of
from homing.collection.lance.catalogue import LanceCatalogue
from homing.collection.lance.folder import LanceFolder, create_lance, open_lance
from homing.collection.lance.live import LanceLive
from homing.collection.lance.table import one_of
from homing.collection.outcome import Migration, Released
from homing.errors import CollectionError
from homing.extractors import Extractor
from homing.indexes.lance import CODE, VECTOR, codes_of, matrix_of

_PIECE = 1_000  # references that are looked for at once
Advance = Callable[[], None]


def migrate_lance(home: Place, codebook: Codebook, extractor: Extractor | None, advance: Advance) -> Migration:
    """Build the next generation; interrupted, it continues when called again."""
    old = open_lance(home)
    if old.codebook.fingerprint == codebook.fingerprint:
        raise CollectionError(f"{home} has codebook '{codebook.name}' ({codebook.fingerprint[:12]}) already")
    target = place_of(old.home, "next")
    if not (target / "collection.toml").is_file():
        create_lance(target, codebook)
    new = open_lance(home, which="next")
    if new.codebook.fingerprint != codebook.fingerprint:
        raise CollectionError(
            f"{home} migrates to codebook '{new.codebook.name}' ({new.codebook.fingerprint[:12]}) already; "
            f"go on with that, or delete {target} to begin with another"
        )
    return _carried(old, new, extractor, advance)


def switch_lance(home: Place, extractor: Extractor | None, *, leave_missing: bool) -> Migration:
    """Let the next generation answer in place of the current one, with all that was added meanwhile.

    Nobody is held up. So what others record until they are done, in the generation before, is carried over once more.
    """
    old, new = open_lance(home), open_lance(home, which="next")
    done = _carried(old, new, extractor, lambda: None)
    if done.missing and not leave_missing:
        raise CollectionError(
            f"{len(done.missing):,} photos could not be carried over, the first: "
            f"{done.missing[0]}; bring their files back, or go without: --leave-missing"
        )
    make_current(old.home)
    return _carried(old, new, extractor, lambda: None)


def forget_lance(home: Place) -> None:
    """Delete the generations that answered before the switch."""
    generation(home, "current")
    forget_previous(home)


def _carried(old: LanceFolder, new: LanceFolder, extractor: Extractor | None, advance: Advance) -> Migration:
    carrying = LanceCarrying(old.codebook, new.codebook, extractor, advance)
    carrying.carry(old.catalogue, new.catalogue)
    LanceLive(new).compact()
    verdicts: dict[str, list[Released]] = {"keep": [], "again": [], "unknown": []}
    for (photo, *_), row in old.catalogue.log.sent_out().items():
        there = new.catalogue.find(photo) if row.state == "activated" and row.written else None
        seen = None if there is None else new.catalogue.release(there, row.path, row.sha256)
        if there is not None and seen is not None:
            kind = "keep" if seen.state == "activated" else "unknown" if seen.reason == GONE else "again"
            source, _ = new.catalogue.describe(there)
            verdicts[kind].append(Released(source, row.path, seen.reason))
    return Migration(
        generation=new.path,
        codebook=new.codebook.name,
        photos=new.catalogue.counts()["photos"],
        missing=carrying.missing,
        **verdicts,
    )


class LanceCarrying(Carrying):
    """The same job between datasets, by hashes."""

    def carry(self, old: LanceCatalogue, new: LanceCatalogue) -> None:
        """Make the next generation hold what the current one holds now."""
        self.missing.clear()
        old.look_again()
        self._carry_references(old, new)
        self._carry_log(old, new)

    def _carry_references(self, old: LanceCatalogue, new: LanceCatalogue) -> None:
        for piece in old.references.pieces(["sha256", "source", CODE, VECTOR], size=_PIECE):
            rows = list(self._as_rows(piece))
            hashes = [row.sha256 for row in rows]
            there = new.references.rows(["sha256", "source"], one_of("sha256", hashes))
            known = dict(zip(there["sha256"].to_pylist(), there["source"].to_pylist(), strict=True))
            for row in rows:
                if known.get(row.sha256, row.source) != row.source:
                    new.references.update({"source": row.source}, one_of("sha256", [row.sha256]))
            wanted = [row for row in rows if row.sha256 not in known]
            if ready := self._coded(wanted) if wanted else []:
                new.add(_as_new(ready))
            self._done(len(rows))
        for piece in new.references.pieces(["sha256"], size=_PIECE):
            hashes = piece["sha256"].to_pylist()
            kept = set(old.references.rows(["sha256"], one_of("sha256", hashes))["sha256"].to_pylist())
            gone = [number for each in hashes if each not in kept if (number := new.find(each)) is not None]
            new.remove(gone)

    def _as_rows(self, piece: Any) -> Iterator[PhotoRow]:
        turned = np.ascontiguousarray(matrix_of(piece[VECTOR]))
        vectors = self._old.quantiser.turn_back(turned).astype(np.float16)
        for row, code, vector in zip(
            piece.select(["sha256", "source"]).to_pylist(), codes_of(piece), vectors, strict=True
        ):
            yield PhotoRow(0, row["sha256"], row["source"], "", "", code.tobytes(), vector.tobytes())

    def _carry_log(self, old: LanceCatalogue, new: LanceCatalogue) -> None:
        carried, ready = new.log.sent_out(), list[tuple[str, SentOut]]()
        for sent, row in old.log.sent_out().items():
            number, before = new.find(sent[0]), carried.get(sent)
            # What nobody could tell is asked again.
            if number is None or (before and before.written == row.written and before.reason != GONE):
                continue
            (judged,) = self._judged([row._replace(photo=number)], new.descriptors(np.array([number])))
            ready.append((sent[0], judged))
            if len(ready) == _PIECE:
                new.log.take(ready)
                ready = []
        if ready:
            new.log.take(ready)


def _as_new(rows: list[PhotoRow]) -> NewPhotos:
    return NewPhotos(
        [row.sha256 for row in rows],
        [row.source for row in rows],
        np.stack([np.frombuffer(row.code, np.uint8) for row in rows]),
        np.stack([np.frombuffer(row.vector, np.float16) for row in rows]).astype(np.float32),
    )
