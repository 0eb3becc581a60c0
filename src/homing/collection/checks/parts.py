"""Check the files that opening a collection needs, and find files that a crash left behind."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from homing import codebooks
from homing._io.files import TEMPORARY_NAME, write_atomically
from homing._io.paths import location
from homing.codebooks import Codebook, Distractors
from homing.collection.checks.findings import STALE_SECONDS, Findings
from homing.collection.folder import UPLOADS, Folder
from homing.collection.generations import delete_path, deleted_generations, other_generations
from homing.collection.settings import open_catalog, read_settings, refuse_other_format, write_settings
from homing.errors import CodebookError, CollectionError, FormatError

_HASH = re.compile("[0-9a-f]{64}")


def refuse_if_no_collection(path: Path) -> None:
    """Raise an error for a folder that has neither a catalog nor settings."""
    if not (path / "catalog.sqlite").is_file() and not (path / "collection.toml").is_file():
        raise CollectionError(f"{path} is not a collection; make one with Collection.create, or: homing init {path}")


def check_parts(path: Path, findings: Findings) -> bool:
    """Check settings, codebook and distractors. Returns whether the collection can be opened."""
    if not (path / "catalog.sqlite").is_file():
        refuse_other_format(path)  # other formats name the catalog differently
        findings.report("catalog", f"{path / 'catalog.sqlite'} is missing", "restore it from a backup")
        return False
    if not _settings(path, findings):
        return False
    settings = read_settings(path)
    return _codebook(path, settings, findings) and _distractors(path, settings, findings)


def _settings(path: Path, findings: Findings) -> bool:
    try:
        read_settings(path)
    except FormatError:
        raise
    except CollectionError:

        def repair() -> None:
            open_catalog(path).close()  # raises an error on a newer format, whose settings this version cannot write
            file = path / "distractors"
            write_settings(path, Codebook.read(path / "codebook"), file.read_bytes() if file.is_file() else None)

        problem = f"{path / 'collection.toml'} is missing or damaged"
        return findings.repair_or_report("settings", problem, "written again", repair, "restore it from a backup")
    return True


def _codebook(path: Path, settings: dict[str, Any], findings: Findings) -> bool:
    file, fingerprint = path / "codebook", settings["fingerprint"]
    try:
        codebook = Codebook.read(file)
        if codebook.fingerprint == fingerprint:
            return True
        problem = f"{file} is '{codebook.name}' ({codebook.fingerprint[:12]}), not the codebook of the collection"
    except CodebookError as error:
        problem = str(error)
    by_hand = f"restore '{settings['codebook']}' ({fingerprint[:12]}) as {file}, from a backup or its original file"
    bundled = (codebooks.load(name) for name in codebooks.available())
    same = next((book for book in bundled if book.fingerprint == fingerprint), None)
    if same is None:
        findings.report("codebook", problem, by_hand)
        return False
    repair = partial(write_atomically, file, same.to_bytes())
    return findings.repair_or_report("codebook", problem, "restored from homing's own copy", repair, by_hand)


def _distractors(path: Path, settings: dict[str, Any], findings: Findings) -> bool:
    file, codebook = path / "distractors", Codebook.read(path / "codebook")
    expected = settings.get("distractors")  # missing in collections of older versions
    try:
        data = file.read_bytes() if file.is_file() else None
    except OSError as error:
        findings.report("distractors", f"{file} cannot be read: {error.strerror}", "make it readable")
        return False
    if data is None and expected is None:
        return True
    if data is not None and (
        hashlib.sha256(data).hexdigest() == expected or (expected is None and _is_readable(data, codebook))
    ):
        return True
    problem = f"{file} is {'missing' if data is None else 'damaged'}"
    by_hand = "restore it from a backup, or make a new collection with: homing init COLLECTION --with-distractors"
    bundled = codebooks.bundled_distractors(codebook).to_bytes() if codebooks.has_distractors(codebook) else None
    if bundled is None or (expected is not None and hashlib.sha256(bundled).hexdigest() != expected):
        findings.report("distractors", problem, by_hand)
        return False
    repair = partial(write_atomically, file, bundled)
    return findings.repair_or_report("distractors", problem, "restored from homing's own copy", repair, by_hand)


def _is_readable(data: bytes, codebook: Codebook) -> bool:
    try:
        Distractors.from_bytes(data, codebook, "distractors")
    except CodebookError:
        return False
    return True


def check_leftovers(folder: Folder, findings: Findings) -> None:
    """Find temporary files that a crash left in the collection or in folders of released files.

    Also finds remains of deleted generations, and uploads without a reference.
    """
    # Uploads first: removing a file inside an upload folder would update its modification time.
    for file in _unclaimed_uploads(folder):
        problem = f"{file} holds an upload without a reference"
        findings.repair_or_report("file", problem, "removed", partial(delete_path, file), "remove it")
    inside = [folder.root.absolute(), *folder.root.absolute().glob("generation-*")]
    _check_temporaries(inside, findings, drafts=True)
    _check_temporaries(folder.root.absolute().glob(f"{UPLOADS}/*"), findings)
    check_out_folders((path for (path,) in folder.catalog._fetch_all("SELECT DISTINCT path FROM releases")), findings)
    for file in deleted_generations(folder.root):
        problem = f"{file} belongs to a deleted generation"
        findings.repair_or_report("file", problem, "removed", partial(delete_path, file), "remove it")


def check_out_folders(released: Iterable[str], findings: Findings) -> None:
    """Find temporary files that a crash left in folders of released files."""
    files = map(location, released)
    _check_temporaries({each.parent for each in files if isinstance(each, Path)}, findings)


def _check_temporaries(folders: Iterable[Path], findings: Findings, *, drafts: bool = False) -> None:
    for file in (file for folder in sorted(folders) for file in _leftovers(folder, drafts=drafts)):
        findings.repair_or_report(
            "file", f"{file} is a temporary file that a crash left", "removed", partial(delete_path, file), "remove it"
        )


def _unclaimed_uploads(folder: Folder) -> list[Path]:
    """Folders of uploads without a reference, left by a crash while the photo was added or removed."""
    if other_generations(folder.root):
        return []  # another generation may refer to them
    uploads = folder.root.absolute() / UPLOADS
    found = []
    for each in sorted([*uploads.glob("*"), *uploads.glob("released/*")]):
        with suppress(FileNotFoundError):  # its writer has just finished
            stale = time.time() - each.lstat().st_mtime > STALE_SECONDS
            if _HASH.fullmatch(each.name) and stale and folder.catalog.find(each.name) is None:
                found.append(each)
    return found


def _leftovers(parent: Path, *, drafts: bool) -> list[Path]:
    """Stale temporary files in a folder; with `drafts` also stale temporary folders."""
    found = []
    with suppress(FileNotFoundError, NotADirectoryError):  # no folder, no leftovers
        for file in sorted(parent.iterdir()):
            with suppress(FileNotFoundError):  # its writer has just finished
                ours = TEMPORARY_NAME.fullmatch(file.name) and (drafts or file.is_file())
                if ours and time.time() - file.lstat().st_mtime > STALE_SECONDS:
                    found.append(file)
    return found
