"""From one codebook to another: both answer side by side until the collection is switched over."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from homing import codebooks
from homing._places import Place, place
from homing.collection._carrying import GONE, Carrying
from homing.collection._transfer import Transfer
from homing.collection._writing import changing, one_keeper
from homing.collection.folder import Folder, create_folder, open_folder
from homing.collection.generations import forget_previous, make_current, place_of
from homing.collection.lance.folder import belongs_in_lance, open_lance
from homing.collection.lance.migration import forget_lance, migrate_lance, switch_lance
from homing.collection.outcome import Migration, Released
from homing.errors import CollectionError
from homing.extractors import Extractor


def migrate(
    path: str | Place,
    codebook: str | Path | codebooks.Codebook,
    *,
    extractor: Extractor | None = None,
    advance: Callable[[], None] = lambda: None,
) -> Migration:
    """Build the next generation of a collection, for another codebook; interrupted, it continues when called again.

    New codes come from the descriptors that are kept or, where the codebook is one of another network, from the files.
    `advance` is called for each reference that is done.
    """
    book = codebook if isinstance(codebook, codebooks.Codebook) else codebooks.load(str(codebook))
    if belongs_in_lance(place(path)):
        return migrate_lance(place(path), book, extractor, advance)
    home = _home(path)
    with _opened(home) as old, changing(old):
        if old.codebook.fingerprint == book.fingerprint:
            raise CollectionError(f"{path} has codebook '{book.name}' ({book.fingerprint[:12]}) already")
        target = place_of(home, "next")
        if not target.exists():
            strangers = old.background is not None and codebooks.has_background(book)
            create_folder(target, book, codebooks.bundled_background(book) if strangers else None)
        with _opened(home, "next") as new:
            if new.codebook.fingerprint != book.fingerprint:
                raise CollectionError(
                    f"{path} migrates to codebook '{new.codebook.name}' ({new.codebook.fingerprint[:12]}) already; "
                    f"go on with that, or delete {target} to begin with another"
                )
            return _carried(old, new, extractor, advance)


def switch(path: str | Place, *, extractor: Extractor | None = None, leave_missing: bool = False) -> Migration:
    """Let the next generation answer in place of the current one, with all that was added meanwhile.

    Refuses to lose references that could not be carried over, unless it is told to `leave_missing` ones.
    """
    if belongs_in_lance(place(path)):
        return switch_lance(place(path), extractor, leave_missing=leave_missing)
    home = _home(path)
    with _opened(home) as old, changing(old), _opened(home, "next") as new:
        done = _carried(old, new, extractor, lambda: None)
        if done.missing and not leave_missing:
            raise CollectionError(
                f"{len(done.missing):,} photos could not be carried over, the first: "
                f"{done.missing[0]}; bring their files back, or go without: --leave-missing"
            )
        with _transfers(old, new) as (before, after):
            after.reserve(before.last_id())
        make_current(home)
    return done


def forget(path: str | Place) -> None:
    """Delete the generations that answered before the switch."""
    if belongs_in_lance(place(path)):
        forget_lance(place(path))
        return
    home = _home(path)
    with _opened(home) as current, changing(current), one_keeper(home):
        forget_previous(home)


def count(path: str | Place) -> int:
    """How many references there are to carry over."""
    if belongs_in_lance(place(path)):
        return open_lance(place(path)).catalogue.counts()["photos"]
    with _opened(_home(path)) as old:
        return old.catalogue.counts()["photos"]


def _home(path: str | Place) -> Path:
    return Path(os.path.abspath(str(path)))


@contextmanager
def _opened(home: Path, which: str = "current") -> Iterator[Folder]:
    folder = open_folder(home, which)
    with closing(folder.catalogue):
        yield folder


@contextmanager
def _transfers(old: Folder, new: Folder) -> Iterator[tuple[Transfer, Transfer]]:
    with (
        closing(Transfer(old.path / "catalogue.sqlite")) as before,
        closing(Transfer(new.path / "catalogue.sqlite")) as after,
    ):
        yield before, after


def _carried(old: Folder, new: Folder, extractor: Extractor | None, advance: Callable[[], None]) -> Migration:
    with _transfers(old, new) as (before, after):
        if after.last_id() > before.last_id():  # what the old one lacks would be removed
            raise CollectionError(
                f"{new.path} holds references that the current generation never had: it was current before. "
                f"If {old.home / 'current'} was lost, write the number of that generation into it"
            )
        carrying = Carrying(old.codebook, new.codebook, extractor, advance)
        carrying.run(before, after)
        verdicts: dict[str, list[Released]] = {"keep": [], "again": [], "unknown": []}
        for rows in before.releases():
            for row in rows:
                seen = after.verdict(row) if row.written else None
                if seen is not None and "activated" in (row.state, seen[1]):  # which it may be again
                    source, state, reason = seen
                    kind = "keep" if state == "activated" else "unknown" if reason == GONE else "again"
                    verdicts[kind].append(Released(source, row.path, reason))
        return Migration(
            generation=new.path,
            codebook=new.codebook.name,
            photos=after.counts()["photos"],
            missing=carrying.missing,
            **verdicts,
        )
