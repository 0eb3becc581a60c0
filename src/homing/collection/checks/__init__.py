"""Whether a collection on disk is what it should be, and what can be repaired of it without losing anything."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from functools import cache
from pathlib import Path

from homing import extractors
from homing._io.paths import Location, location
from homing.collection._locks import writer_lock
from homing.collection.checks.catalog import RESTORE_HINT, check_catalog
from homing.collection.checks.findings import Findings
from homing.collection.checks.parts import check_leftovers, check_parts, refuse_if_no_collection
from homing.collection.checks.references import check_references, check_released_descriptors
from homing.collection.checks.releases import check_releases
from homing.collection.checks.snapshot import check_snapshot
from homing.collection.folder import Folder, open_folder
from homing.collection.generations import find_generation, generation_path, other_generations
from homing.collection.lance.checks import check_lance_at
from homing.collection.lance.folder import is_lance
from homing.collection.outcome import Finding
from homing.errors import CollectionError, FormatError
from homing.extractors import Extractor


def check(path: str | Location, *, repair: bool = False, extractor: Extractor | None = None) -> list[Finding]:
    """What is not as it should be in a collection, also in one too damaged to be opened.

    `repair` repairs what can be repaired without loss; the collection is locked meanwhile. `extractor` is needed only
    if the codebook's extractor is one of your own. Every generation of a collection that migrates is checked.
    """
    where, findings = location(path), Findings(repair)
    if is_lance(where):
        return check_lance_at(where, repair=repair)
    assert isinstance(where, Path)
    root = where
    refuse_if_no_collection(find_generation(root))
    with _lock_if_repairing(root, repair):
        for which in ("current", *other_generations(root)):
            _check(root, which, extractor, findings)
    return findings.found


def _check(root: Path, which: str, extractor: Extractor | None, findings: Findings) -> None:
    if not check_parts(find_generation(root, which), findings):
        return  # the rest makes sense only with these
    try:
        folder = open_folder(root, which)
    except FormatError:
        raise
    except CollectionError as error:
        if isinstance(error.__cause__, sqlite3.OperationalError):
            raise  # held by another, or on a disk that cannot be written: nothing is wrong with it
        findings.report("catalog", str(error), RESTORE_HINT)
        return

    @cache
    def network() -> Extractor:
        return extractor or extractors.load(folder.codebook.extractor)

    with closing(folder.catalog):
        _check_folder(folder, network, findings)


def check_opened(folder: Folder, network: Callable[[], Extractor], *, repair: bool) -> list[Finding]:
    """The same for a folder that is open; `network` is asked for only where a descriptor has to be made again."""
    findings = Findings(repair)
    with _lock_if_repairing(folder.root, repair):
        _check_folder(folder, network, findings)
    return findings.found


def _lock_if_repairing(root: Path, repair: bool) -> AbstractContextManager[None]:
    return writer_lock(root) if repair else nullcontext()


def _check_folder(folder: Folder, network: Callable[[], Extractor], findings: Findings) -> None:
    if check_catalog(folder.catalog, findings):
        if check_references(folder, network, findings):
            check_snapshot(folder, findings)
        check_released_descriptors(folder, findings)
        if folder.path == generation_path(folder.root, "current"):  # the others know the same files
            check_releases(folder.catalog, findings)
            check_leftovers(folder, findings)
