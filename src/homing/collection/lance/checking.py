"""Whether a collection in Lance is what it should be, and what can be mended of it without losing anything."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

import numpy as np

from homing import codebooks
from homing._parallel import map_ahead
from homing._places import Place, place, write_whole
from homing.codebooks import Codebook, agree
from homing.collection.checking.findings import STALE, Findings
from homing.collection.checking.parts import check_out_folders
from homing.collection.generations import generation
from homing.collection.lance.folder import LanceFolder, open_lance, refuse_no_lance
from homing.collection.lance.table import Table, numbered, one_of
from homing.collection.outcome import Finding
from homing.collection.settings import read_settings, settings_text
from homing.errors import CodebookError, CollectionError, FormatError, HomingError
from homing.indexes.lance import CODE, VECTOR, codes_of, drop_index, fold_in, has_moved, ids_of, matrix_of
from homing.photo import read_file

_BY_HAND = "restore it from a backup, or look for an earlier version: homing search --version"
_UNIT = 0.01  # how far from 1 the norm of a sound descriptor may be


def check_lance_at(where: Place, *, repair: bool) -> list[Finding]:
    """The same for one that is not open: what it is made of is looked at first."""
    findings, path = Findings(repair), generation(where)
    refuse_no_lance(path)
    if not (_check_codebook(path, findings) and _check_settings(path, findings)):
        return findings.found
    try:
        folder = open_lance(where)
    except FormatError:
        raise
    except CollectionError as error:
        findings.leave("catalogue", str(error), _BY_HAND)
        return findings.found
    return findings.found + check_lance(folder, repair=repair)


def _check_codebook(path: Place, findings: Findings) -> bool:
    file, same = path / "codebook", None
    try:
        Codebook.from_bytes(file.read_bytes(), str(file))
        return True
    except (OSError, CodebookError) as error:
        problem = f"{file} cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
    by_hand = f"put the codebook that the collection was made with back as {file}"
    with suppress(CollectionError):
        fingerprint = read_settings(path)["fingerprint"]
        bundled = (codebooks.load(name) for name in codebooks.available())
        same = next((book for book in bundled if book.fingerprint == fingerprint), None)
    if same is None:
        findings.leave("codebook", problem, by_hand)
        return False
    mend = partial(write_whole, file, same.to_bytes(), new=False)
    return findings.mend("codebook", problem, "put back as it comes with homing", mend, by_hand)


def _check_settings(path: Place, findings: Findings) -> bool:
    try:
        read_settings(path)
        return True
    except FormatError:
        raise
    except CollectionError as error:
        problem = str(error).partition("; mend it")[0]
    codebook = Codebook.from_bytes((path / "codebook").read_bytes(), str(path))
    mend = partial(write_whole, path / "collection.toml", settings_text(codebook, None).encode(), new=False)
    return findings.mend("settings", problem, "written anew from the codebook", mend, "restore it from a backup")


def check_lance(folder: LanceFolder, *, repair: bool) -> list[Finding]:
    """Verify datasets, codes, descriptors, indexes, and released files against their hashes."""
    findings, catalogue = Findings(repair), folder.catalogue
    if repair:
        catalogue.references.refuse_if_old()
    try:
        for table in (catalogue.references, catalogue.releases):
            with table.telling("trusted"):
                table.latest().validate()
        _check_lookups(folder, findings)
        _check_references(folder, findings)
        _check_index(folder, findings)
        _check_releases(folder, findings)
    except CollectionError as error:
        findings.leave("catalogue", str(error), _BY_HAND)
    return findings.found


def _check_references(folder: LanceFolder, findings: Findings) -> None:
    codebook, numbers = folder.codebook, defaultdict[str, list[int]](list)
    columns = ["_rowid", "sha256", "source", CODE, VECTOR]
    for piece in folder.catalogue.references.pieces(columns):
        for number, sha256 in zip(ids_of(piece).tolist(), piece["sha256"].to_pylist(), strict=True):
            numbers[sha256].append(number)
        turned = np.ascontiguousarray(matrix_of(piece[VECTOR]))
        norms = np.linalg.norm(turned, axis=1)
        sound = np.isfinite(norms) & (np.abs(norms - 1) <= _UNIT)
        descriptors = codebook.quantiser.turn_back(np.where(sound[:, None], turned, 0))
        fits = agree(codebook, codes_of(piece), descriptors)
        for number, source, is_sound, is_its in zip(
            ids_of(piece).tolist(), piece["source"].to_pylist(), sound, fits, strict=True
        ):
            if not (is_sound and is_its):
                problem = "has a code that is not that of its descriptor" if is_sound else "has no sound descriptor"
                again = f"homing remove {folder.home} {number}, then add {source} again"
                findings.leave("reference", f"reference {number}, {source}, {problem}", again)
    references = folder.catalogue.references
    for sha256, ids in numbers.items():
        if len(ids) > 1:
            drop = partial(references.delete, numbered(sorted(ids)[1:]))
            problem = f"the photo {sha256[:12]}… is there {len(ids)} times"
            findings.mend("reference", problem, "the first stays", drop, "run homing check --repair again")


def _check_lookups(folder: LanceFolder, findings: Findings) -> None:
    """Whether rows can be looked for by what they are looked for by."""
    for table, columns in folder.catalogue.lookups:
        for column in columns:
            try:
                table.rows([column], f"{column} = ''")
            except CollectionError as error:
                mend = partial(_look_up_anew, table, column)
                findings.mend("index", str(error), "built anew", mend, "run homing check --repair again")


def _look_up_anew(table: Table, column: str) -> None:
    with table.telling("indexed"):
        table.latest().create_scalar_index(column, "BTREE", replace=True)
    table.latest()


def _check_index(folder: LanceFolder, findings: Findings) -> None:
    def rebuild() -> None:
        with references.telling("indexed"):
            drop_index(references.latest())
            fold_in(references.latest(), folder.codebook)

    references, problem = folder.catalogue.references, None
    try:
        with references.telling("read"):
            if has_moved(references.dataset, folder.codebook):
                problem = "the index has other cells than the codebook: somebody trained it anew"
    except CollectionError as error:
        problem = f"the index is damaged: {error}"
    if problem is not None:
        findings.mend("index", problem, "built anew", rebuild, "run homing check --repair again")


def _check_releases(folder: LanceFolder, findings: Findings) -> None:
    """A file may hold whichever release of several went there; one that was planned and not written is no finding."""
    catalogue = folder.catalogue
    known = {each for piece in catalogue.references.pieces(["sha256"]) for each in piece["sha256"].to_pylist()}
    by_path: dict[str, list[dict[str, Any]]] = defaultdict(list)
    left = set()
    for row in catalogue.releases.rows(["photo", "path", "sha256", "written", "changed"]).to_pylist():
        if row["photo"] in known:
            by_path[row["path"]].append(row)
        elif datetime.now(timezone.utc) - row["changed"] > timedelta(seconds=STALE):
            left.add(row["photo"])
    if left:
        problem = f"releases of {len(left):,} photos that are no references any more are left"
        forget = partial(catalogue.releases.delete, one_of("photo", sorted(left)))
        findings.mend("release", problem, "forgotten", forget, "run homing check --repair again")
    check_out_folders(by_path, findings)
    for (path, rows), found in zip(by_path.items(), map_ahead(_hash, by_path), strict=True):
        same = [row for row in rows if row["sha256"] == found]
        if any(row["written"] for row in same):
            continue
        if same:
            note = partial(_confirm, folder, same[-1])
            problem = f"{path} was written, but a crash came before that was noted"
            findings.mend("release", problem, "noted", note, "run the same homing activate again")
        elif any(row["written"] for row in rows):
            what = "is gone, or cannot be read" if found is None else "is not what was released there"
            findings.leave("release", f"{path} {what}", "put it back, or release the photo again")


def _hash(path: str) -> str | None:
    try:
        return hashlib.sha256(read_file(place(path))).hexdigest()
    except HomingError:
        return None


def _confirm(folder: LanceFolder, row: dict[str, Any]) -> None:
    number = folder.catalogue.find(row["photo"])
    planned = None if number is None else folder.catalogue.release(number, row["path"], row["sha256"])
    if number is not None and planned is not None:
        folder.catalogue.confirm_releases([(number, planned)])
