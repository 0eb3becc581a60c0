"""A collection in Lance, on this machine or in a bucket: what lies at its place.

s3://bucket/photos.lance/
  collection.toml     format version, codebook, extractor; written last, so that a collection is there whole
  codebook            a copy of its own: activated photos are tied to it for ever
  references.lance    the references: hashes, sources, codes, descriptors, and the index of these
  releases.lance      what was released of them
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from homing._places import Address, Place, write_whole
from homing.codebooks import Codebook
from homing.collection._likeness import CollectionLikeness
from homing.collection.folder import BACKGROUND_IDS
from homing.collection.generations import generation
from homing.collection.lance.catalogue import REFERENCES, RELEASES, LanceCatalogue, schemas
from homing.collection.lance.table import Table
from homing.collection.settings import read_settings, settings_text
from homing.errors import CollectionError
from homing.indexes.lance import check_family, load_lance

_SCHEMES = ("s3", "gs", "az")
_SETTINGS, _CODEBOOK = "collection.toml", "codebook"


@dataclass(frozen=True)
class LanceFolder:
    """An opened collection in Lance; has what the folder of other collections has."""

    home: Place
    path: Place
    codebook: Codebook
    catalogue: LanceCatalogue
    background: None = None

    @cached_property
    def likeness(self) -> CollectionLikeness:
        """How much alike its photos are."""
        return CollectionLikeness(self.catalogue.descriptors, self.codebook, range(BACKGROUND_IDS, BACKGROUND_IDS))


def belongs_in_lance(where: Place) -> bool:
    """Whether a collection at this place is, or would be, one in Lance: in a bucket, or called so."""
    if isinstance(where, Address):
        return True
    if not where.is_dir() or not any(where.iterdir()):
        return where.suffix == ".lance"
    return any((where / each).is_dir() for each in (REFERENCES, RELEASES)) or any(
        where.glob(f"generation-*/{REFERENCES}")
    )  # when the first is forgotten


def create_lance(where: Place, codebook: Codebook) -> None:
    """Make a new collection, empty; it is one when all of it is there."""
    load_lance()
    check_family(codebook)
    where = _reachable(where)
    try:
        if (where / _SETTINGS).exists():
            about = read_settings(where)
            raise CollectionError(
                f"{where} is a collection already, made with codebook '{about['codebook']}' "
                f"({about['fingerprint'][:12]}); use it as it is, or choose another name"
            )
        if isinstance(where, Path) and where.exists() and any(each.name not in _PARTS for each in where.iterdir()):
            raise CollectionError(f"{where} exists and is not empty; choose another name for the collection")
        _put_codebook(where / _CODEBOOK, codebook.to_bytes())
        for name, schema in schemas(codebook).items():
            Table.create(where / name, schema)
        write_whole(where / _SETTINGS, settings_text(codebook, None).encode(), new=True)
    except OSError as error:
        raise CollectionError(f"cannot make a collection at {where}: {error.strerror}") from error


def _reachable(where: Place) -> Place:
    """A place that Lance reaches under the same name as others do."""
    if not isinstance(where, Address):
        return Path(os.path.abspath(where))
    if where.scheme not in _SCHEMES or len(where.way.parts) < 3 or set("%#?") & set(where.full):
        raise CollectionError(
            f"{where} is no address for a collection: it begins with {', '.join(f'{each}://' for each in _SCHEMES)}, "
            "names a folder in a bucket, and has no %, # or ?"
        )
    return where


def _put_codebook(file: Place, data: bytes) -> None:
    """Two who make a collection at once do not take each other's codebook away."""
    try:
        write_whole(file, data, new=True)
    except FileExistsError:
        if file.read_bytes() != data:
            raise CollectionError(
                f"{file} is another codebook, of a collection whose collection.toml is gone; choose another name"
            ) from None


_PARTS = (_SETTINGS, _CODEBOOK, REFERENCES, RELEASES)


def open_lance(home: Place, which: str = "current", version: int | None = None) -> LanceFolder:
    """The parts of a collection, checked against what its settings say; its references at a version, or as they are."""
    load_lance()
    home = _reachable(home)
    try:
        path: Place = generation(home, which)
        if not (path / _SETTINGS).exists():
            raise CollectionError(f"{path} is not a collection; make one with: homing init {path}")
        settings, file = read_settings(path), path / _CODEBOOK
        codebook = Codebook.from_bytes(file.read_bytes(), str(file))
    except OSError as error:
        raise CollectionError(f"{home} cannot be read: {error.strerror}") from error
    if codebook.fingerprint != settings["fingerprint"]:
        raise CollectionError(
            f"{path} was made with codebook '{settings['codebook']}' ({settings['fingerprint'][:12]}), "
            f"but holds '{codebook.name}' ({codebook.fingerprint[:12]}); put the right codebook back"
        )
    return LanceFolder(home, path, codebook, LanceCatalogue(path, codebook, version))
