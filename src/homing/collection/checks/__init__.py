"""Consistency check of a collection on disk, and repair without loss of data."""

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
from homing.extractors import Extractor, ExtractorLike


def check(path: str | Location, *, repair: bool = False, extractor: ExtractorLike | None = None) -> list[Finding]:
    """Find problems in a collection, including one that is too damaged to open.

    `repair` fixes what can be fixed without loss, and locks the collection meanwhile. `extractor` is needed only if the
    codebook's extractor is a custom one. All generations of a migrating collection are checked.
    """
    where, findings = location(path), Findings(repair)
    given = None if extractor is None else extractors.load(extractor)
    if is_lance(where):
        return check_lance_at(where, repair=repair)
    assert isinstance(where, Path)
    root = where
    refuse_if_no_collection(find_generation(root))
    with _lock_if_repairing(root, repair):
        for which in ("current", *other_generations(root)):
            _check(root, which, given, findings)
    return findings.found


def _check(root: Path, which: str, extractor: Extractor | None, findings: Findings) -> None:
    if not check_parts(find_generation(root, which), findings):
        return  # the other checks need these files
    try:
        folder = open_folder(root, which)
    except FormatError:
        raise
    except CollectionError as error:
        if isinstance(error.__cause__, sqlite3.OperationalError):
            raise  # locked by another process or not writable, which is no damage
        findings.report("catalog", str(error), RESTORE_HINT)
        return

    @cache
    def network() -> Extractor:
        return extractor or extractors.load(folder.codebook.extractor)

    with closing(folder.catalog):
        _check_folder(folder, network, findings)


def check_opened(folder: Folder, network: Callable[[], Extractor], *, repair: bool) -> list[Finding]:
    """Check an open folder. `network` is called only if a descriptor must be recomputed."""
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
        if folder.path == generation_path(folder.root, "current"):  # all generations share the released files
            check_releases(folder.catalog, findings)
            check_leftovers(folder, findings)
