"""The files a collection needs to be opened, and those that a crash left behind."""

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
from homing._files import TEMPORARY, write_atomically
from homing._places import place
from homing.codebooks import Background, Codebook
from homing.collection.checking.findings import STALE, Findings
from homing.collection.folder import UPLOADS, Folder
from homing.collection.generations import beside, delete, forgotten
from homing.collection.settings import open_catalogue, read_settings, write_settings
from homing.errors import CodebookError, CollectionError, FormatError

_HASH = re.compile("[0-9a-f]{64}")


def refuse_no_collection(path: Path) -> None:
    """Refuse a folder that has neither a catalogue nor settings."""
    if not (path / "catalogue.sqlite").is_file() and not (path / "collection.toml").is_file():
        raise CollectionError(f"{path} is not a collection; make one with: homing init {path}")


def check_parts(path: Path, findings: Findings) -> bool:
    """Check settings, codebook and background; whether the collection can be opened now."""
    if not (path / "catalogue.sqlite").is_file():
        findings.leave("catalogue", f"{path / 'catalogue.sqlite'} is missing", "restore it from a backup")
        return False
    if not _settings(path, findings):
        return False
    settings = read_settings(path)
    return _codebook(path, settings, findings) and _background(path, settings, findings)


def _settings(path: Path, findings: Findings) -> bool:
    try:
        read_settings(path)
    except FormatError:
        raise
    except CollectionError:

        def mend() -> None:
            open_catalogue(path).close()  # one of a later homing has settings that this one cannot write
            strangers = path / "background"
            write_settings(
                path, Codebook.read(path / "codebook"), strangers.read_bytes() if strangers.is_file() else None
            )

        problem = f"{path / 'collection.toml'} is missing or damaged"
        return findings.mend("settings", problem, "written anew", mend, "restore it from a backup")
    return True


def _codebook(path: Path, settings: dict[str, Any], findings: Findings) -> bool:
    file, fingerprint = path / "codebook", settings["fingerprint"]
    try:
        codebook = Codebook.read(file)
        if codebook.fingerprint == fingerprint:
            return True
        problem = (
            f"{file} is '{codebook.name}' ({codebook.fingerprint[:12]}), another than the collection was made with"
        )
    except CodebookError as error:
        problem = str(error)
    by_hand = (
        f"put '{settings['codebook']}' ({fingerprint[:12]}) back as {file}, from a backup or the file it came from"
    )
    bundled = (codebooks.load(name) for name in codebooks.available())
    same = next((book for book in bundled if book.fingerprint == fingerprint), None)
    if same is None:
        findings.leave("codebook", problem, by_hand)
        return False
    mend = partial(write_atomically, file, same.to_bytes())
    return findings.mend("codebook", problem, "put back as it comes with homing", mend, by_hand)


def _background(path: Path, settings: dict[str, Any], findings: Findings) -> bool:
    file, codebook = path / "background", Codebook.read(path / "codebook")
    expected = settings.get("background")  # not said by collections made before it was kept
    try:
        data = file.read_bytes() if file.is_file() else None
    except OSError as error:
        findings.leave("background", f"{file} cannot be read: {error.strerror}", "make it readable")
        return False
    if data is None and expected is None:
        return True
    if data is not None and (
        hashlib.sha256(data).hexdigest() == expected or (expected is None and _is_one(data, codebook))
    ):
        return True
    problem = f"{file} is {'missing' if data is None else 'damaged'}"
    by_hand = "restore it from a backup, or make a new collection with: homing init COLLECTION --with-background"
    bundled = codebooks.bundled_background(codebook).to_bytes() if codebooks.has_background(codebook) else None
    if bundled is None or (expected is not None and hashlib.sha256(bundled).hexdigest() != expected):
        findings.leave("background", problem, by_hand)
        return False
    mend = partial(write_atomically, file, bundled)
    return findings.mend("background", problem, "put back as it comes with homing", mend, by_hand)


def _is_one(data: bytes, codebook: Codebook) -> bool:
    try:
        Background.from_bytes(data, codebook, "background")
    except CodebookError:
        return False
    return True


def check_leftovers(folder: Folder, findings: Findings) -> None:
    """Temporary files that a crash left in the collection, or in a folder that photos were released into.

    And what is left of generations that were forgotten, and of uploads that are no references.
    """
    # First of all: to remove something inside one would make it look as if it were new.
    for file in _unclaimed(folder):
        problem = f"{file} holds an upload that is no reference"
        findings.mend("file", problem, "removed", partial(delete, file), "remove it")
    inside = [folder.home.absolute(), *folder.home.absolute().glob("generation-*")]
    _check_temporaries(inside, findings, drafts=True)
    _check_temporaries(folder.home.absolute().glob(f"{UPLOADS}/*"), findings)
    check_out_folders((path for (path,) in folder.catalogue._all("SELECT DISTINCT path FROM releases")), findings)
    for file in forgotten(folder.home):
        problem = f"{file} is left of a generation that was forgotten"
        findings.mend("file", problem, "removed", partial(delete, file), "remove it")


def check_out_folders(released: Iterable[str], findings: Findings) -> None:
    """Temporary files that a crash left in folders that photos were released into."""
    files = map(place, released)
    _check_temporaries({each.parent for each in files if isinstance(each, Path)}, findings)


def _check_temporaries(folders: Iterable[Path], findings: Findings, *, drafts: bool = False) -> None:
    for file in (file for folder in sorted(folders) for file in _leftovers(folder, drafts=drafts)):
        findings.mend("file", f"{file} was left by a crash", "removed", partial(delete, file), "remove it")


def _unclaimed(folder: Folder) -> list[Path]:
    """Where uploads lie whose photo is no reference: a crash came before it was one, or as it was removed."""
    if beside(folder.home):
        return []  # the other generation may know them
    uploads = folder.home.absolute() / UPLOADS
    found = []
    for each in sorted([*uploads.glob("*"), *uploads.glob("released/*")]):
        with suppress(FileNotFoundError):  # whoever was writing it is done
            stale = time.time() - each.lstat().st_mtime > STALE
            if _HASH.fullmatch(each.name) and stale and folder.catalogue.find(each.name) is None:
                found.append(each)
    return found


def _leftovers(parent: Path, *, drafts: bool) -> list[Path]:
    """Files, and of generations folders as well."""
    found = []
    with suppress(FileNotFoundError, NotADirectoryError):  # then there are none
        for file in sorted(parent.iterdir()):
            with suppress(FileNotFoundError):  # whoever was writing it is done
                ours = TEMPORARY.fullmatch(file.name) and (drafts or file.is_file())
                if ours and time.time() - file.lstat().st_mtime > STALE:
                    found.append(file)
    return found
