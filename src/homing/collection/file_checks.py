"""Check the files that opening a collection needs, and find files that a crash left behind."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from homing import codebooks
from homing._io.files import TEMPORARY_NAME
from homing._io.paths import Location, location, write_file
from homing.codebooks import Distractors
from homing.collection.outcome import STALE_SECONDS, Findings
from homing.collection.storage import Parts, Storage
from homing.collection.storage.layout import (
    CODEBOOK,
    DISTRACTORS,
    SETTINGS,
    UPLOADS,
    delete_path,
    deleted_generations,
    other_generations,
    read_codebook,
    read_settings,
    settings_text,
)
from homing.errors import CodebookError, CollectionError, FormatError, HomingError

_HASH = re.compile("[0-9a-f]{64}")


def check_parts(kind: type[Storage], root: Location, path: Location, findings: Findings) -> bool:
    """Check settings, codebook and distractors. Returns whether the collection can be opened."""
    if not _check_settings(kind, root, path, findings):
        return False
    settings = read_settings(path)
    return _check_codebook(path, settings, findings) and _check_distractors(path, settings, findings)


def _check_settings(kind: type[Storage], root: Location, path: Location, findings: Findings) -> bool:
    try:
        read_settings(path)
    except FormatError:
        raise
    except CollectionError:
        try:  # whether the storage has another format version, before settings of this one are written
            kind.open(root, path, Parts(read_codebook(path)), None).close()
        except HomingError as error:  # other problems are found later
            if isinstance(error, FormatError):
                raise

        def repair() -> None:
            file = path / DISTRACTORS
            text = settings_text(read_codebook(path), file.read_bytes() if file.is_file() else None)
            write_file(path / SETTINGS, text.encode(), new=False)

        problem = f"{path / SETTINGS} is missing or damaged"
        by_hand = "restore it from a backup; if an import was interrupted, delete the folder and import again"
        return findings.repair_or_report("settings", problem, "written again", repair, by_hand)
    return True


def _check_codebook(path: Location, settings: dict[str, Any], findings: Findings) -> bool:
    file, fingerprint = path / CODEBOOK, settings["fingerprint"]
    try:
        codebook = read_codebook(path)
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
    repair = partial(write_file, file, same.to_bytes(), new=False)
    return findings.repair_or_report("codebook", problem, "restored from homing's own copy", repair, by_hand)


def _check_distractors(path: Location, settings: dict[str, Any], findings: Findings) -> bool:
    file, codebook = path / DISTRACTORS, read_codebook(path)
    expected = settings.get("distractors")  # missing in collections of older versions
    try:
        data = file.read_bytes() if file.is_file() else None
    except OSError as error:
        findings.report("distractors", f"{file} cannot be read: {error.strerror}", "make it readable")
        return False
    if data is None and expected is None:
        return True
    if data is not None and hashlib.sha256(data).hexdigest() == expected:
        return True
    if data is not None and expected is None:
        with suppress(CodebookError):
            Distractors.from_bytes(data, codebook, "distractors")
            return True
    problem = f"{file} is {'missing' if data is None else 'damaged'}"
    by_hand = "restore it from a backup, or make a new collection with: homing init COLLECTION --with-distractors"
    bundled = codebooks.bundled_distractors(codebook).to_bytes() if codebooks.has_distractors(codebook) else None
    if bundled is None or (expected is not None and hashlib.sha256(bundled).hexdigest() != expected):
        findings.report("distractors", problem, by_hand)
        return False
    repair = partial(write_file, file, bundled, new=False)
    return findings.repair_or_report("distractors", problem, "restored from homing's own copy", repair, by_hand)


def check_leftovers(storage: Storage, findings: Findings) -> None:
    """Find temporary files that a crash left in the collection or in folders of released files.

    Also finds remains of deleted generations, and uploads without a reference.
    """
    if isinstance(storage.root, Path):
        root = storage.root.absolute()
        # Uploads first: removing a file inside an upload folder would update its modification time.
        for file in _unclaimed_uploads(storage, root / UPLOADS):
            problem = f"{file} holds an upload without a reference"
            findings.repair_or_report("file", problem, "removed", partial(delete_path, file), "remove it")
        _check_temporaries([root, *root.glob("generation-*")], findings, drafts=True)
        _check_temporaries(root.glob(f"{UPLOADS}/*"), findings)
    for deleted in deleted_generations(storage.root, storage.files):
        problem = f"{deleted} belongs to a deleted generation"
        findings.repair_or_report("file", problem, "removed", partial(delete_path, deleted), "remove it")


def check_out_folders(released: Iterable[str], findings: Findings) -> None:
    """Find temporary files that a crash left in folders of released files."""
    files = map(location, released)
    _check_temporaries({each.parent for each in files if isinstance(each, Path)}, findings)


def _check_temporaries(folders: Iterable[Path], findings: Findings, *, drafts: bool = False) -> None:
    for file in chain(*(_leftovers(folder, drafts=drafts) for folder in sorted(folders))):
        problem = f"{file} is a temporary file that a crash left"
        findings.repair_or_report("file", problem, "removed", partial(delete_path, file), "remove it")


def _unclaimed_uploads(storage: Storage, uploads: Path) -> Iterator[Path]:
    """Folders of uploads without a reference, left by a crash while the photo was added or removed."""
    if other_generations(storage.root):
        return  # another generation may refer to them
    for each in sorted([*uploads.glob("*"), *uploads.glob("released/*")]):
        with suppress(FileNotFoundError):  # its writer has just finished
            stale = time.time() - each.lstat().st_mtime > STALE_SECONDS
            if _HASH.fullmatch(each.name) and stale and storage.find(each.name) is None:
                yield each


def _leftovers(parent: Path, *, drafts: bool) -> Iterator[Path]:
    """Stale temporary files in a folder; with `drafts` also stale temporary folders."""
    with suppress(FileNotFoundError, NotADirectoryError):  # no folder, no leftovers
        for file in sorted(parent.iterdir()):
            with suppress(FileNotFoundError):  # its writer has just finished
                ours = TEMPORARY_NAME.fullmatch(file.name) and (drafts or file.is_file())
                if ours and time.time() - file.lstat().st_mtime > STALE_SECONDS:
                    yield file
