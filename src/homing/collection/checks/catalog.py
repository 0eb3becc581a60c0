"""Check the catalog as a database."""

from __future__ import annotations

from functools import partial

from homing.collection.catalog import Catalog
from homing.collection.checks.findings import Findings
from homing.errors import CollectionError

_REVISION_GAP = 1_000_000
RESTORE_HINT = (
    "restore catalog.sqlite from a backup, or save its readable rows with: "
    "sqlite3 catalog.sqlite .recover | sqlite3 recovered.sqlite"
)


def check_catalog(catalog: Catalog, findings: Findings) -> bool:
    """Run SQLite's checks, and find rows without their reference. Returns whether the other checks can run."""
    try:
        problems = _integrity(catalog)
        if problems:

            def repair() -> None:
                with catalog._transaction() as connection:
                    connection.execute("REINDEX")  # indexes can be rebuilt from the tables
                if remaining := _integrity(catalog):
                    raise CollectionError(remaining[0])

            problem = f"the database is damaged: {problems[0]}" + (
                f" ({len(problems):,} problems)" if problems[1:] else ""
            )
            if not findings.repair_or_report("catalog", problem, "its indexes were rebuilt", repair, RESTORE_HINT):
                return False
        catalog._fetch_all("SELECT 1 FROM photos, descriptors, releases, metadata LIMIT 0")  # do they exist?
        for table, row, *_ in catalog._fetch_all("PRAGMA foreign_key_check"):
            findings.report("catalog", f"row {row} of {table} belongs to no existing reference", RESTORE_HINT)
        return _check_revision(catalog, findings)
    except CollectionError as error:
        findings.report("catalog", str(error), RESTORE_HINT)
        return False


def _check_revision(catalog: Catalog, findings: Findings) -> bool:
    try:
        _ = catalog.revision, catalog.codes_revision
    except CollectionError as error:
        return findings.repair_or_report(
            "catalog", str(error), "a new revision number was set", partial(_advance_revision, catalog), RESTORE_HINT
        )
    return True


def _advance_revision(catalog: Catalog) -> None:
    """Raise the revision above any value that open connections hold, so that all of them reload the changes."""
    known = catalog._fetch_all(
        "SELECT max(revision) FROM removed UNION SELECT max(CAST(value AS INTEGER)) FROM metadata"
        " WHERE name IN ('codes_revision', 'snapshot_revision')"
    )
    revision = max(number or 0 for (number,) in known) + _REVISION_GAP
    catalog.set_metadata(revision=str(revision), codes_revision=str(revision))


def _integrity(catalog: Catalog) -> list[str]:
    lines = [" ".join(str(row[0]).split()) for row in catalog._fetch_all("PRAGMA integrity_check")]
    return [] if lines == ["ok"] else lines
