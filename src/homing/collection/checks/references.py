"""Check that each reference has a valid descriptor and the matching code."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from homing._io.paths import location
from homing.codebooks import Codebook, codes_match
from homing.collection.catalog import Catalog
from homing.collection.checks.findings import Findings
from homing.collection.folder import Folder
from homing.errors import HomingError, PhotoError
from homing.extractors import Extractor, describe_images
from homing.photo import Photo, read_file

_CHUNK = 10_000
_UNIT = 0.01  # tolerance of the norm around 1: 20 times the effect of rounding to fp16


class _ReferenceRow(NamedTuple):
    number: int
    sha256: str
    source: str
    code: bytes
    vector: bytes | None

    def problem(self, codebook: Codebook) -> str | None:
        """The problem of this row by itself, None if it is valid."""
        if not isinstance(self.code, bytes):  # a damaged type byte in the SQLite file
            return "has a code that is not bytes"
        if len(self.code) != codebook.code_size:
            return f"has a code of {len(self.code)} bytes, expected {codebook.code_size}"
        return _problem_of(self.vector, codebook.dim)

    def __str__(self) -> str:
        return f"reference {self.number}, {self.source},"


def check_references(folder: Folder, network: Callable[[], Extractor], findings: Findings) -> bool:
    """Check descriptors and codes, and recompute bad ones from the original. Returns whether all are valid now."""
    all_valid = True
    for rows in _in_chunks(folder.catalog):
        problems = {row: problem for row in rows if (problem := row.problem(folder.codebook))}
        valid = [row for row in rows if row not in problems]
        if valid:
            codes = np.frombuffer(b"".join(row.code for row in valid), np.uint8).reshape(len(valid), -1)
            vectors = np.stack([np.frombuffer(row.vector or b"", np.float16) for row in valid])
            mismatched = [
                row
                for row, matches in zip(valid, codes_match(folder.codebook, codes, vectors), strict=True)
                if not matches
            ]
            problems |= dict.fromkeys(mismatched, "has a code that does not match its descriptor")
        for row, problem in problems.items():
            by_hand = f"restore the original as {row.source}, then run: homing check {folder.root} --repair"
            repair = partial(_reencode, folder, network, row)
            all_valid &= findings.repair_or_report("reference", f"{row} {problem}", "computed again", repair, by_hand)
    return all_valid


def check_released_descriptors(folder: Folder, findings: Findings) -> None:
    """Check the descriptors of activated files. A repair deletes bad ones; the original's is still compared."""
    catalog, last = folder.catalog, 0
    query = "SELECT rowid, photo, vector FROM released_descriptors WHERE rowid > ? ORDER BY rowid LIMIT ?"
    while rows := catalog._fetch_all(query, last, _CHUNK):
        last = rows[-1][0]
        for row, photo, vector in rows:
            if problem := _problem_of(vector, folder.codebook.dim):
                repair = partial(_delete_released_descriptor, catalog, row)
                problem = f"the released file of reference {photo} {problem}"
                findings.repair_or_report(
                    "release", problem, "deleted; copies are compared with the original", repair, "try again"
                )


def _delete_released_descriptor(catalog: Catalog, row: int) -> None:
    with catalog._transaction() as connection:
        connection.execute("DELETE FROM released_descriptors WHERE rowid = ?", (row,))


def _in_chunks(catalog: Catalog) -> Iterator[list[_ReferenceRow]]:
    query = (
        "SELECT id, sha256, source, code, vector FROM photos LEFT JOIN descriptors ON photo = id"
        " WHERE id > ? ORDER BY id LIMIT ?"
    )
    last = 0
    while rows := [_ReferenceRow(*row) for row in catalog._fetch_all(query, last, _CHUNK)]:
        last = rows[-1].number
        yield rows


def _problem_of(vector: bytes | None, dim: int) -> str | None:
    if vector is None:
        return "has no descriptor"
    if not isinstance(vector, bytes):
        return "has a descriptor that is not bytes"
    if len(vector) != 2 * dim:
        return f"has a descriptor of {len(vector)} bytes, expected {2 * dim}"
    values = np.frombuffer(vector, np.float16).astype(np.float32)
    if not np.isfinite(values).all() or abs(np.linalg.norm(values) - 1) > _UNIT:
        return "has a descriptor that is not of unit norm"
    return None


def _reencode(folder: Folder, network: Callable[[], Extractor], row: _ReferenceRow) -> None:
    """Recompute the descriptor from the original, and the code unless the stored one matches."""
    codebook = folder.codebook
    right_size = isinstance(row.code, bytes) and len(row.code) == codebook.code_size
    try:
        descriptor = _describe_original(folder, network, row)
    except HomingError:
        if right_size or row.vector is None or _problem_of(row.vector, codebook.dim):
            raise  # code and descriptor disagree, and either may be the damaged one
        descriptor = np.frombuffer(row.vector, np.float16)
    code = np.frombuffer(row.code, np.uint8) if right_size else None
    if code is None or not codes_match(codebook, code[None], descriptor.astype(np.float16)[None])[0]:
        code = codebook.encode(torch.from_numpy(descriptor.astype(np.float32))[None])[0]
    folder.catalog.set_code(row.number, code, descriptor)


def _describe_original(folder: Folder, network: Callable[[], Extractor], row: _ReferenceRow) -> np.ndarray:
    data = read_file(location(row.source))
    if hashlib.sha256(data).hexdigest() != row.sha256:
        raise PhotoError(f"{row.source} is not the photo that was indexed")
    extractor = network()
    folder.codebook.check(extractor)
    descriptor: np.ndarray = describe_images(extractor, [Photo.decode(data, row.source).pixels()])[0].numpy()
    return descriptor
