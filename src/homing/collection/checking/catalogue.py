"""Whether the catalogue is sound as a database."""

from __future__ import annotations

from functools import partial

from homing.collection.catalogue import Catalogue
from homing.collection.checking.findings import Findings
from homing.errors import CollectionError

_MORE = 1_000_000
BY_HAND = (
    "restore catalogue.sqlite from a backup, or save what can be read of it with: "
    "sqlite3 catalogue.sqlite .recover | sqlite3 recovered.sqlite"
)


def check_catalogue(catalogue: Catalogue, findings: Findings) -> bool:
    """Check what SQLite can check, and that nothing stands for a reference that is not there; whether to go on."""
    try:
        problems = _integrity(catalogue)
        if problems:

            def mend() -> None:
                with catalogue._change() as change:
                    change.execute("REINDEX")  # tables hold the truth, indexes can be made of them
                if left := _integrity(catalogue):
                    raise CollectionError(left[0])

            problem = f"SQLite finds it damaged: {problems[0]}" + (f" ({len(problems):,} such)" if problems[1:] else "")
            if not findings.mend("catalogue", problem, "its indexes were made anew", mend, BY_HAND):
                return False
        catalogue._all("SELECT 1 FROM photos, descriptors, releases, facts LIMIT 0")  # are they there?
        for table, row, *_ in catalogue._all("PRAGMA foreign_key_check"):
            findings.leave("catalogue", f"row {row} of {table} is of no reference there is", BY_HAND)
        return _check_count(catalogue, findings)
    except CollectionError as error:
        findings.leave("catalogue", str(error), BY_HAND)
        return False


def _check_count(catalogue: Catalogue, findings: Findings) -> bool:
    try:
        _ = catalogue.revision, catalogue.recoded
    except CollectionError as error:
        return findings.mend("catalogue", str(error), "counted on", partial(_count_on, catalogue), BY_HAND)
    return True


def _count_on(catalogue: Catalogue) -> None:
    """Count on from more than anybody who has it open can have counted: they all look for what changed."""
    known = catalogue._all(
        "SELECT max(revision) FROM removed UNION SELECT max(CAST(value AS INTEGER)) FROM facts"
        " WHERE name IN ('recoded', 'snapshot_revision')"
    )
    revision = max(number or 0 for (number,) in known) + _MORE
    catalogue.set_facts(revision=str(revision), recoded=str(revision))


def _integrity(catalogue: Catalogue) -> list[str]:
    said = [" ".join(str(row[0]).split()) for row in catalogue._all("PRAGMA integrity_check")]
    return [] if said == ["ok"] else said
