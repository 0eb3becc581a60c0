"""Consistency check of a collection and of the files it has written, and repair without loss of data."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext, suppress
from datetime import datetime, timezone
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from homing import codebooks, extractors
from homing._io.files import TEMPORARY_NAME
from homing._io.parallel import prefetch_map
from homing._io.paths import Location, location, write_file
from homing.codebooks import Codebook, Distractors, codes_match
from homing.collection.outcome import STALE_SECONDS, Finding, Findings
from homing.collection.references import StoredReference, format_time
from homing.collection.storage import Parts, Storage, open_generation, storage_at
from homing.collection.storage.layout import (
    CODEBOOK,
    DISTRACTORS,
    SETTINGS,
    UPLOADS,
    delete_path,
    deleted_generations,
    find_generation,
    generation_path,
    other_generations,
    read_codebook,
    read_settings,
    settings_text,
)
from homing.errors import CodebookError, CollectionError, FormatError, HomingError, PhotoError
from homing.extractors import Extractor, ExtractorLike, describe_images
from homing.photo import Photo, read_file

_UNIT = 0.01  # tolerance of the norm around 1: 20 times the effect of rounding to fp16
_HASH = re.compile("[0-9a-f]{64}")


def check(path: str | Location, *, repair: bool = False, extractor: ExtractorLike | None = None) -> list[Finding]:
    """Find problems in a collection, including one that is too damaged to open.

    `repair` fixes what can be fixed without loss, and locks the collection meanwhile. `extractor` is needed only if the
    codebook's extractor is a custom one. All generations of a migrating collection are checked.
    """
    kind, root = storage_at(location(path))
    findings, given = Findings(repair), None if extractor is None else extractors.load(extractor)
    kind.refuse_if_no_collection(find_generation(root))
    with kind.lock(root) if repair else nullcontext():
        for which in ("current", *other_generations(root)):
            _check_generation(kind, root, find_generation(root, which), given, findings)
    return findings.found


def _check_generation(
    kind: type[Storage], root: Location, path: Location, extractor: Extractor | None, findings: Findings
) -> None:
    if not _check_settings(kind, root, path, findings):
        return  # the other checks need the settings, the codebook and the distractors
    settings = read_settings(path)
    if not (_check_codebook(path, settings, findings) and _check_distractors(path, settings, findings)):
        return
    try:
        storage = open_generation(kind, root, path)
    except FormatError:
        raise
    except CollectionError as error:
        if not kind.is_damage(error):
            raise
        findings.report("catalog", str(error), kind.restore_hint)
        return

    @cache
    def network() -> Extractor:
        return extractor or extractors.load(storage.codebook.extractor)

    with closing(storage):
        _check_storage(storage, network, findings)


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


def check_opened(storage: Storage, network: Callable[[], Extractor], *, repair: bool) -> list[Finding]:
    """Check an open generation. `network` is called only if a descriptor must be recomputed."""
    findings = Findings(repair)
    with storage.lock(storage.root) if repair else nullcontext():
        _check_storage(storage, network, findings)
    return findings.found


def _check_storage(storage: Storage, network: Callable[[], Extractor], findings: Findings) -> None:
    try:
        storage.refresh()
        if not storage.check(findings):
            return
        if _check_references(storage, network, findings):
            storage.check_index(findings)
        _check_released_descriptors(storage, findings)
        if storage.path == generation_path(storage.root, "current"):  # all generations share the released files
            _check_releases(storage, findings)
            _check_leftovers(storage, findings)
    except CollectionError as error:
        if not storage.is_damage(error):
            raise
        findings.report("catalog", str(error), storage.restore_hint)


def _check_references(storage: Storage, network: Callable[[], Extractor], findings: Findings) -> bool:
    """Check descriptors and codes, and recompute bad ones from the original. Returns whether all are valid now."""
    codebook, all_valid = storage.codebook, True
    for rows in storage.rows():
        problems = {row: problem for row in rows if (problem := _problem_of(row, codebook))}
        valid = [row for row in rows if row not in problems]
        if valid:
            codes = np.frombuffer(b"".join(row.code for row in valid), np.uint8).reshape(len(valid), -1)
            vectors = np.stack([np.frombuffer(row.vector or b"", np.float16) for row in valid])
            matching = codes_match(codebook, codes, vectors)
            mismatched = [row for row, matches in zip(valid, matching, strict=True) if not matches]
            problems |= dict.fromkeys(mismatched, "has a code that does not match its descriptor")
        for row, problem in problems.items():
            by_hand = f"restore the original as {row.source}, then run: homing check {storage.root} --repair"
            repair = partial(_reencode, storage, network, row)
            text = f"reference {row.id}, {row.source}, {problem}"
            all_valid &= findings.repair_or_report("reference", text, "computed again", repair, by_hand)
    return all_valid


def _problem_of(row: StoredReference, codebook: Codebook) -> str | None:
    """The problem of a reference by itself, None if it is valid."""
    if not isinstance(row.code, bytes):  # a damaged type byte in the SQLite file
        return "has a code that is not bytes"
    if len(row.code) != codebook.code_size:
        return f"has a code of {len(row.code)} bytes, expected {codebook.code_size}"
    return "has no descriptor" if row.vector is None else _vector_problem(row.vector, codebook.dim)


def _vector_problem(vector: bytes, dim: int) -> str | None:
    if not isinstance(vector, bytes):
        return "has a descriptor that is not bytes"
    if len(vector) != 2 * dim:
        return f"has a descriptor of {len(vector)} bytes, expected {2 * dim}"
    values = np.frombuffer(vector, np.float16).astype(np.float32)
    if not np.isfinite(values).all() or abs(np.linalg.norm(values) - 1) > _UNIT:
        return "has a descriptor that is not of unit norm"
    return None


def _reencode(storage: Storage, network: Callable[[], Extractor], row: StoredReference) -> None:
    """Recompute the descriptor from the original, and the code unless the stored one matches."""
    codebook = storage.codebook
    right_size = isinstance(row.code, bytes) and len(row.code) == codebook.code_size
    try:
        descriptor = _describe_original(codebook, network, row)
    except HomingError:
        if right_size or row.vector is None or _vector_problem(row.vector, codebook.dim):
            raise  # code and descriptor disagree, and either may be the damaged one
        descriptor = np.frombuffer(row.vector, np.float16)
    code = np.frombuffer(row.code, np.uint8) if right_size else None
    if code is None or not codes_match(codebook, code[None], descriptor.astype(np.float16)[None])[0]:
        code = codebook.encode(torch.from_numpy(descriptor.astype(np.float32))[None])[0]
    storage.set_code(row.id, code, descriptor)


def _describe_original(codebook: Codebook, network: Callable[[], Extractor], row: StoredReference) -> np.ndarray:
    data = read_file(location(row.source))
    if hashlib.sha256(data).hexdigest() != row.sha256:
        raise PhotoError(f"{row.source} is not the photo that was indexed")
    extractor = network()
    codebook.check(extractor)
    descriptor: np.ndarray = describe_images(extractor, [Photo.decode(data, row.source).pixels()])[0].numpy()
    return descriptor


def _check_released_descriptors(storage: Storage, findings: Findings) -> None:
    """Check the descriptors of activated files. A repair deletes bad ones; the original's is still compared."""
    dim = storage.codebook.dim
    for rows in storage.releases():
        problems = {
            (row.photo, row.sha256): problem
            for row in rows
            if row.vector is not None and (problem := _vector_problem(row.vector, dim))
        }
        for (photo, sha256), problem in problems.items():
            text = f"the released file of reference {photo} {problem}"
            repair = partial(storage.delete_released_descriptor, photo, sha256)
            done = "deleted; copies are compared with the original"
            findings.repair_or_report("release", text, done, repair, "try again")


def _check_releases(storage: Storage, findings: Findings) -> None:
    """Check released files against their hashes.

    If several releases have the same path, the file may hold any of them. A planned release without a file is no
    finding: it was never reported, and the next `activate` writes it.
    """
    photos: dict[str, set[int]] = defaultdict(set)  # by path
    written: dict[str, set[str]] = defaultdict(set)  # the hashes of written files, by path
    for rows in storage.releases():
        for row in rows:
            photos[row.path].add(row.photo)
            if row.written:
                written[row.path].add(row.sha256)
    paths = sorted(photos)
    files = map(location, paths)
    _check_temporaries({each.parent for each in files if isinstance(each, Path)}, findings)
    for path, found in zip(paths, prefetch_map(_hash, paths), strict=True):
        if found not in written[path]:
            _recheck(storage, path, photos[path], findings)


def _recheck(storage: Storage, path: str, photos: set[int], findings: Findings) -> None:
    """Check a path again, since a concurrent job may have released or removed it after the catalog was read."""
    # Read the file before the catalog: a release is in the catalog before its file is written.
    found = _hash(path)
    released = storage.find_released(found) if found else None
    wanted = sorted(photos if released is None else {*photos, released})
    planned = [row for rows in storage.releases(wanted) for row in rows if row.path == path]
    same = [row for row in planned if row.sha256 == found]
    if any(row.written for row in same):
        return
    if same:
        # A repair holds the lock. Without it, a concurrent job may have just written the file.
        stale = format_time(datetime.fromtimestamp(time.time() - STALE_SECONDS, timezone.utc))
        if findings.repair or same[0].changed < stale:
            problem = f"{path} was written, but a crash prevented recording it"
            repair = partial(storage.confirm_releases, same[:1])
            findings.repair_or_report("release", problem, "recorded", repair, "run the same homing activate again")
    elif any(row.written for row in planned):
        source, _ = storage.source_and_state(planned[-1].photo)
        if found is None:
            out = path.rpartition(os.sep)[0]
            by_hand = f"restore it, or release the photo again: homing activate {storage.root} {source} --out {out}"
            findings.report("release", f"{path} is missing or cannot be read", by_hand)
        else:
            by_hand = "move it to another folder, and release the photo again"
            findings.report("release", f"{path} is not the file that was released for {source}", by_hand)


def _hash(path: str) -> str | None:
    try:
        return hashlib.sha256(read_file(location(path))).hexdigest()
    except HomingError:
        return None


def _check_leftovers(storage: Storage, findings: Findings) -> None:
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
