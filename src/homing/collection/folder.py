"""A collection on disk: what lies in its folder, and the index as a snapshot of the catalogue.

holiday.homing/
  collection.toml     format version, codebook, extractor
  codebook            a copy of its own: activated photos are tied to it for ever
  background          codes of strangers, if wanted
  catalogue.sqlite    the truth
  index.faiss         a snapshot; rebuilt from the catalogue when missing, stale or damaged
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from homing._files import whole_folder, write_atomically
from homing.codebooks import Background, Codebook
from homing.collection.catalogue import Catalogue
from homing.errors import CollectionError
from homing.indexes import FaissIndex

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FORMAT = 1
BACKGROUND_IDS = 1 << 48  # ids from here on are strangers, not rows of the catalogue


@dataclass(frozen=True)
class Folder:
    """An opened collection folder."""

    path: Path
    codebook: Codebook
    background: Background | None
    catalogue: Catalogue


def create_folder(
    path: Path,
    codebook: Codebook,
    background: Background | None,
    fill: Callable[[Path], None] = lambda _: None,
) -> None:
    """Make a new collection; it appears whole or not at all. It is empty but for what `fill` puts into its draft."""
    path = Path(os.path.abspath(path))
    if (path / "collection.toml").is_file():
        about = _settings(path)
        raise CollectionError(
            f"{path} is a collection already, made with codebook '{about['codebook']}' ({about['fingerprint'][:12]}); "
            "use it as it is, or choose another name"
        )
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise CollectionError(f"{path} exists and is not empty; choose another name for the collection")
    try:
        with whole_folder(path) as draft:
            _fill(draft, codebook, background)
            fill(draft)
    except OSError as error:
        raise CollectionError(f"cannot make a collection at {path}: {error.strerror}") from error


def _fill(draft: Path, codebook: Codebook, background: Background | None) -> None:
    settings = {
        "format": FORMAT,
        "codebook": codebook.name,
        "fingerprint": codebook.fingerprint,
        "extractor": codebook.extractor,
    }
    lines = (f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    write_atomically(draft / "collection.toml", "".join(lines).encode())
    write_atomically(draft / "codebook", codebook.to_bytes())
    if background is not None:
        write_atomically(draft / "background", background.to_bytes())
    with closing(Catalogue(draft / "catalogue.sqlite")) as catalogue:
        catalogue.create()


def open_folder(path: Path) -> Folder:
    """The parts of a collection, checked against what its settings say."""
    if not (path / "collection.toml").is_file():
        raise CollectionError(f"{path} is not a collection; make one with: homing init {path}")
    settings = _settings(path)
    codebook = Codebook.read(path / "codebook")
    if codebook.fingerprint != settings["fingerprint"]:
        raise CollectionError(
            f"{path} was made with codebook '{settings['codebook']}' ({settings['fingerprint'][:12]}), "
            f"but holds '{codebook.name}' ({codebook.fingerprint[:12]}); put the right codebook back"
        )
    if not (path / "catalogue.sqlite").is_file():
        raise CollectionError(f"{path} has lost its catalogue.sqlite; restore it from a backup")
    return Folder(path, codebook, read_background(path, codebook), Catalogue(path / "catalogue.sqlite"))


def read_background(path: Path, codebook: Codebook) -> Background | None:
    """The strangers in a folder, if there are some."""
    strangers = path / "background"
    try:
        data = strangers.read_bytes() if strangers.is_file() else None
    except OSError as error:
        raise CollectionError(f"{strangers} cannot be read: {error.strerror}") from error
    return Background.from_bytes(data, codebook, str(strangers)) if data is not None else None


def _settings(path: Path) -> dict[str, Any]:
    file = path / "collection.toml"
    try:
        settings: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
        version, _ = settings["format"], (settings["codebook"], settings["fingerprint"], settings["extractor"])
    except (OSError, ValueError, KeyError) as error:
        raise CollectionError(f"{file} cannot be read, or is damaged: {error}") from error
    if version != FORMAT:
        raise CollectionError(f"{path} has format {version}, this homing reads format {FORMAT}; upgrade homing")
    return settings


def load_index(folder: Folder) -> tuple[FaissIndex, bool]:
    """The index of what the catalogue holds now, and whether it is the snapshot; if not it was built anew."""
    snapshot = folder.path / "index.faiss"
    if folder.catalogue.fact("snapshot_revision") == str(folder.catalogue.revision) and snapshot.is_file():
        data = snapshot.read_bytes()
        if hashlib.sha256(data).hexdigest() == folder.catalogue.fact("snapshot_sha256"):
            return FaissIndex(folder.codebook, data), True
    index = FaissIndex(folder.codebook)
    if folder.background is not None:
        index.add(folder.background.codes, BACKGROUND_IDS + np.arange(len(folder.background)))
    for ids, codes in folder.catalogue.codes():
        index.add(codes, ids)
    return index, False


def save_index(folder: Folder, index: FaissIndex, revision: int) -> None:
    """Keep a snapshot of the index as it is at this revision of the catalogue."""
    data = index.to_bytes()
    try:
        write_atomically(folder.path / "index.faiss", data)
    except OSError as error:
        # A full or read-only disk: nothing is lost, the next opening builds the index from the catalogue.
        logging.getLogger("homing").warning("%s: no snapshot of the index was kept: %s", folder.path, error.strerror)
        return
    folder.catalogue.set_facts(snapshot_revision=str(revision), snapshot_sha256=hashlib.sha256(data).hexdigest())
