"""The layout of a collection in Lance, in a local folder or a bucket.

s3://bucket/photos.lance/
  collection.toml     format version, codebook, extractor; written last, so that a collection is complete
  codebook            a private copy: activated photos depend on it permanently
  references.lance    the references: hashes, sources, codes, descriptors, and their index
  releases.lance      the releases of the references
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from homing._io.paths import Address, Location, list_names, write_file
from homing.codebooks import Codebook
from homing.collection._density_ratio import CollectionDensityRatio
from homing.collection.folder import FIRST_DISTRACTOR_ID, refuse_if_collection
from homing.collection.generations import find_generation
from homing.collection.lance.catalog import REFERENCES, LanceCatalog, schemas
from homing.collection.lance.release_log import RELEASES
from homing.collection.lance.table import LanceTable
from homing.collection.settings import read_settings, settings_text
from homing.errors import CollectionError
from homing.indexes.lance import check_family, load_lance

_SCHEMES = ("s3", "gs", "az")
_SETTINGS, _CODEBOOK = "collection.toml", "codebook"
_UNREADABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")  # control characters, and bytes that are not UTF-8
_PARTS = (_SETTINGS, _CODEBOOK, REFERENCES, RELEASES)


@dataclass(frozen=True)
class LanceFolder:
    """The opened datasets of a collection in Lance. Has the interface of `Folder`."""

    root: Location
    path: Location
    codebook: Codebook
    catalog: LanceCatalog
    distractors: None = None

    @cached_property
    def density_ratio(self) -> CollectionDensityRatio:
        """The density ratio of its references."""
        return CollectionDensityRatio(
            self.catalog.descriptors, self.codebook, range(FIRST_DISTRACTOR_ID, FIRST_DISTRACTOR_ID)
        )


def is_lance(where: Location) -> bool:
    """Whether a collection at this location is in Lance, or would be created there: in a bucket, or named *.lance."""
    if isinstance(where, Address):
        return True
    try:
        if not where.is_dir() or not any(where.iterdir()):
            return where.suffix == ".lance"
    except OSError as error:  # not readable, or the name is too long
        raise CollectionError(f"{where} cannot be read: {error.strerror}") from error
    first_generation = any((where / each).is_dir() for each in (REFERENCES, RELEASES))
    return first_generation or any(where.glob(f"generation-*/{REFERENCES}"))  # if the first generation is deleted


def create_lance(where: Location, codebook: Codebook) -> None:
    """Create an empty collection. The settings are written last and complete it."""
    load_lance()
    check_family(codebook)
    where = _check_location(where)
    try:
        refuse_if_collection(where)
        if not set(list_names(where)) <= set(_PARTS):
            raise CollectionError(f"{where} exists and is not empty; choose another name for the collection")
        for name in schemas(codebook):
            LanceTable.refuse_if_filled(where / name)
        _write_codebook(where / _CODEBOOK, codebook.to_bytes())
        for name, schema in schemas(codebook).items():
            LanceTable.create(where / name, schema)
        write_file(where / _SETTINGS, settings_text(codebook, None).encode(), new=True)
    except OSError as error:
        raise CollectionError(f"cannot create a collection at {where}: {error.strerror}") from error


def _check_location(where: Location) -> Location:
    """The absolute location. Raises an error if Lance cannot use it unchanged."""
    if not isinstance(where, Address):
        whole = os.path.abspath(where)
        if _UNREADABLE.search(whole):
            raise CollectionError(
                f"Lance accepts only names in UTF-8 without line breaks, got {where}; choose another name"
            )
        return Path(whole)
    if where.scheme not in _SCHEMES or len(where.pure_path.parts) < 3 or set("%#?") & set(where.url):
        raise CollectionError(
            f"{where} is not an address of a collection: expected {', '.join(f'{each}://' for each in _SCHEMES)} and "
            "a folder in a bucket, without %, # or ?"
        )
    return where


def _write_codebook(file: Location, data: bytes) -> None:
    """Write the codebook, but never over a different one of a concurrent creation."""
    try:
        write_file(file, data, new=True)
    except FileExistsError:
        if file.read_bytes() != data:
            raise CollectionError(
                f"{file} is another codebook, of a collection whose collection.toml is missing; choose another name"
            ) from None


def open_lance(root: Location, which: str = "current", version: int | None = None) -> LanceFolder:
    """Open one generation of a collection, with its references at a version or the latest."""
    root = _check_location(root)
    try:
        path: Location = find_generation(root, which)
    except OSError as error:
        raise _unreadable(root, error) from error
    return open_lance_generation(root, path, version)


def open_lance_generation(root: Location, path: Location, version: int | None = None) -> LanceFolder:
    """Open the datasets of a generation at `path`, and check its codebook against its settings."""
    load_lance()
    try:
        if not (path / _SETTINGS).exists():
            refuse_if_no_lance_collection(path)
            raise CollectionError(f"{path / _SETTINGS} is missing; restore it with: homing check {root} --repair")
        settings, file = read_settings(path), path / _CODEBOOK
        codebook = Codebook.from_bytes(file.read_bytes(), str(file))
    except OSError as error:
        raise _unreadable(root, error) from error
    if codebook.fingerprint != settings["fingerprint"]:
        raise CollectionError(
            f"{path} was made with codebook '{settings['codebook']}' ({settings['fingerprint'][:12]}), "
            f"but holds '{codebook.name}' ({codebook.fingerprint[:12]}); restore the right codebook"
        )
    return LanceFolder(root, path, codebook, LanceCatalog(path, codebook, version))


def refuse_if_no_lance_collection(path: Location) -> None:
    """Raise an error if the location has no part of a collection."""
    if not set(list_names(path)) & set(_PARTS):
        raise CollectionError(f"{path} is not a collection; make one with Collection.create, or: homing init {path}")


def _unreadable(root: Location, error: OSError) -> CollectionError:
    return CollectionError(f"{root} cannot be read: {error.strerror}; find the problem with: homing check {root}")
