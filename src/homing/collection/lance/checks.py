"""Consistency check of a collection in Lance, and repair without loss of data."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

import numpy as np

from homing import codebooks
from homing._io.parallel import prefetch_map
from homing._io.paths import Location, location, write_file
from homing.codebooks import Codebook, codes_match
from homing.collection.checks.findings import STALE_SECONDS, Findings
from homing.collection.checks.parts import check_out_folders
from homing.collection.generations import find_generation
from homing.collection.lance.folder import LanceFolder, open_lance, refuse_if_no_lance_collection
from homing.collection.lance.table import LanceTable, column_in, row_ids_in
from homing.collection.outcome import Finding
from homing.collection.settings import read_settings, settings_text
from homing.errors import CodebookError, CollectionError, FormatError, HomingError
from homing.indexes.lance import CODE, VECTOR, cells_differ, codes_of, drop_index, ids_of, refresh_index, to_matrix
from homing.photo import read_file

_RESTORE_HINT = "restore it from a backup, or look for an earlier version: homing search --version"
_UNIT = 0.01  # tolerance of the norm around 1


def check_lance_at(where: Location, *, repair: bool) -> list[Finding]:
    """Check a collection that is not open, beginning with its settings and codebook."""
    findings, path = Findings(repair), find_generation(where)
    refuse_if_no_lance_collection(path)
    if not (_check_codebook(path, findings) and _check_settings(path, findings)):
        return findings.found
    try:
        folder = open_lance(where)
    except FormatError:
        raise
    except CollectionError as error:
        findings.report("catalog", str(error), _RESTORE_HINT)
        return findings.found
    return findings.found + check_lance(folder, repair=repair)


def _check_codebook(path: Location, findings: Findings) -> bool:
    file, same = path / "codebook", None
    try:
        Codebook.from_bytes(file.read_bytes(), str(file))
        return True
    except (OSError, CodebookError) as error:
        problem = f"{file} cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
    by_hand = f"restore the codebook of the collection as {file}"
    with suppress(CollectionError):
        fingerprint = read_settings(path)["fingerprint"]
        bundled = (codebooks.load(name) for name in codebooks.available())
        same = next((book for book in bundled if book.fingerprint == fingerprint), None)
    if same is None:
        findings.report("codebook", problem, by_hand)
        return False
    repair = partial(write_file, file, same.to_bytes(), new=False)
    return findings.repair_or_report("codebook", problem, "restored from homing's own copy", repair, by_hand)


def _check_settings(path: Location, findings: Findings) -> bool:
    try:
        read_settings(path)
        return True
    except FormatError:
        raise
    except CollectionError as error:
        problem = str(error).partition("; repair it")[0]
    codebook = Codebook.from_bytes((path / "codebook").read_bytes(), str(path))
    repair = partial(write_file, path / "collection.toml", settings_text(codebook, None).encode(), new=False)
    return findings.repair_or_report(
        "settings", problem, "written again from the codebook", repair, "restore it from a backup"
    )


def check_lance(folder: LanceFolder, *, repair: bool) -> list[Finding]:
    """Check the datasets, codes, descriptors and indexes, and released files against their hashes."""
    findings, catalog = Findings(repair), folder.catalog
    if repair:
        catalog.references.refuse_if_pinned()
    try:
        for table in (catalog.references, catalog.releases):
            with table.convert_errors("validated"):
                table.latest().validate()
        _check_lookups(folder, findings)
        _check_references(folder, findings)
        _check_index(folder, findings)
        _check_releases(folder, findings)
    except CollectionError as error:
        findings.report("catalog", str(error), _RESTORE_HINT)
    return findings.found


def _check_references(folder: LanceFolder, findings: Findings) -> None:
    codebook, numbers = folder.codebook, defaultdict[str, list[int]](list)
    columns = ["_rowid", "sha256", "source", CODE, VECTOR]
    for batch in folder.catalog.references.batches(columns):
        for number, sha256 in zip(ids_of(batch).tolist(), batch["sha256"].to_pylist(), strict=True):
            numbers[sha256].append(number)
        transformed = np.ascontiguousarray(to_matrix(batch[VECTOR]))
        norms = np.linalg.norm(transformed, axis=1)
        valid = np.isfinite(norms) & (np.abs(norms - 1) <= _UNIT)
        descriptors = codebook.quantizer.inverse_transform(np.where(valid[:, None], transformed, 0))
        matches = codes_match(codebook, codes_of(batch), descriptors)
        for number, source, is_valid, code_matches in zip(
            ids_of(batch).tolist(), batch["source"].to_pylist(), valid, matches, strict=True
        ):
            if not (is_valid and code_matches):
                problem = "has a code that does not match its descriptor" if is_valid else "has no valid descriptor"
                by_hand = f"remove it with: homing remove {folder.root} {number}; then add {source} again"
                findings.report("reference", f"reference {number}, {source}, {problem}", by_hand)
    references = folder.catalog.references
    for sha256, ids in numbers.items():
        if len(ids) > 1:
            drop = partial(references.delete, row_ids_in(sorted(ids)[1:]))
            problem = f"the photo {sha256[:12]}… has {len(ids)} references"
            findings.repair_or_report(
                "reference", problem, "all but the first were removed", drop, "run homing check --repair again"
            )


def _check_lookups(folder: LanceFolder, findings: Findings) -> None:
    """Check that the scalar indexes of the lookup columns work."""
    for table, columns in folder.catalog.lookups:
        for column in columns:
            try:
                table.rows([column], f"{column} = ''")
            except CollectionError as error:
                repair = partial(_rebuild_lookup, table, column)
                findings.repair_or_report("index", str(error), "rebuilt", repair, "run homing check --repair again")


def _rebuild_lookup(table: LanceTable, column: str) -> None:
    with table.convert_errors("indexed"):
        table.latest().create_scalar_index(column, "BTREE", replace=True)
    table.latest()


def _check_index(folder: LanceFolder, findings: Findings) -> None:
    def rebuild() -> None:
        with references.convert_errors("indexed"):
            drop_index(references.latest())
            refresh_index(references.latest(), folder.codebook)

    references, problem = folder.catalog.references, None
    try:
        with references.convert_errors("read"):
            if cells_differ(references.dataset, folder.codebook):
                problem = "the index has other cells than the codebook: it was trained again"
    except CollectionError as error:
        problem = f"the index is damaged: {error}"
    if problem is not None:
        findings.repair_or_report("index", problem, "rebuilt", rebuild, "run homing check --repair again")


def _check_releases(folder: LanceFolder, findings: Findings) -> None:
    """Check released files. A file may hold any release with its path; a planned one without a file is no finding."""
    catalog = folder.catalog
    known = {each for batch in catalog.references.batches(["sha256"]) for each in batch["sha256"].to_pylist()}
    by_path: dict[str, list[dict[str, Any]]] = defaultdict(list)
    orphans = set()
    for row in catalog.releases.rows(["photo", "path", "sha256", "written", "changed"]).to_pylist():
        if row["photo"] in known:
            by_path[row["path"]].append(row)
        elif datetime.now(timezone.utc) - row["changed"] > timedelta(seconds=STALE_SECONDS):
            orphans.add(row["photo"])
    if orphans:
        problem = f"{len(orphans):,} photos have releases but no reference any more"
        delete_orphans = partial(catalog.releases.delete, column_in("photo", sorted(orphans)))
        findings.repair_or_report("release", problem, "deleted", delete_orphans, "run homing check --repair again")
    check_out_folders(by_path, findings)
    for (path, rows), found in zip(by_path.items(), prefetch_map(_hash, by_path), strict=True):
        same = [row for row in rows if row["sha256"] == found]
        if any(row["written"] for row in same):
            continue
        if same:
            confirm = partial(_confirm, folder, same[-1])
            problem = f"{path} was written, but a crash prevented recording it"
            findings.repair_or_report("release", problem, "recorded", confirm, "run the same homing activate again")
        elif any(row["written"] for row in rows):
            what = "is missing or cannot be read" if found is None else "is not the file that was released there"
            findings.report("release", f"{path} {what}", "restore it, or release the photo again")


def _hash(path: str) -> str | None:
    try:
        return hashlib.sha256(read_file(location(path))).hexdigest()
    except HomingError:
        return None


def _confirm(folder: LanceFolder, row: dict[str, Any]) -> None:
    number = folder.catalog.find(row["photo"])
    planned = None if number is None else folder.catalog.find_release(number, row["path"], row["sha256"])
    if number is not None and planned is not None:
        folder.catalog.confirm_releases([(number, planned)])
