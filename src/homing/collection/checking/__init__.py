"""Whether a collection on disk is what it should be, and what can be mended of it without losing anything."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from functools import cache
from pathlib import Path

from homing import extractors
from homing._places import Place, place
from homing.collection._writing import one_writer
from homing.collection.checking.catalogue import BY_HAND, check_catalogue
from homing.collection.checking.findings import Findings
from homing.collection.checking.parts import check_leftovers, check_parts, refuse_no_collection
from homing.collection.checking.references import check_references, check_released
from homing.collection.checking.releases import check_releases
from homing.collection.checking.snapshot import check_snapshot
from homing.collection.folder import Folder, open_folder
from homing.collection.generations import beside, generation, place_of
from homing.collection.lance.checking import check_lance_at
from homing.collection.lance.folder import belongs_in_lance
from homing.collection.outcome import Finding
from homing.errors import CollectionError, FormatError
from homing.extractors import Extractor


def check(path: str | Place, *, repair: bool = False, extractor: Extractor | None = None) -> list[Finding]:
    """What is not as it should be in a collection, also in one too damaged to be opened.

    `repair` mends what can be mended without losing anything; nobody else changes the collection meanwhile. `extractor`
    is needed only where the codebook's is one of your own. Of a collection that migrates all generations are checked.
    """
    where, findings = place(path), Findings(repair)
    if belongs_in_lance(where):
        return check_lance_at(where, repair=repair)
    assert isinstance(where, Path)
    home = where
    refuse_no_collection(generation(home))
    with _alone(home, repair):
        for which in ("current", *beside(home)):
            _check(home, which, extractor, findings)
    return findings.found


def _check(home: Path, which: str, extractor: Extractor | None, findings: Findings) -> None:
    if not check_parts(generation(home, which), findings):
        return  # the rest makes sense only with these
    try:
        folder = open_folder(home, which)
    except FormatError:
        raise
    except CollectionError as error:
        if isinstance(error.__cause__, sqlite3.OperationalError):
            raise  # held by another, or on a disk that cannot be written: nothing is wrong with it
        findings.leave("catalogue", str(error), BY_HAND)
        return

    @cache
    def network() -> Extractor:
        return extractor or extractors.load(folder.codebook.extractor)

    with closing(folder.catalogue):
        _check_open(folder, network, findings)


def check_opened(folder: Folder, network: Callable[[], Extractor], *, repair: bool) -> list[Finding]:
    """The same for a folder that is open; `network` is asked for only where a descriptor has to be made again."""
    findings = Findings(repair)
    with _alone(folder.home, repair):
        _check_open(folder, network, findings)
    return findings.found


def _alone(home: Path, repair: bool) -> AbstractContextManager[None]:
    return one_writer(home) if repair else nullcontext()


def _check_open(folder: Folder, network: Callable[[], Extractor], findings: Findings) -> None:
    if check_catalogue(folder.catalogue, findings):
        if check_references(folder, network, findings):
            check_snapshot(folder, findings)
        check_released(folder, findings)
        if folder.path == place_of(folder.home, "current"):  # the others know the same files
            check_releases(folder.catalogue, findings)
            check_leftovers(folder, findings)
