"""A collection on disk: what lies in its folder.

holiday.homing/
  collection.toml     format version, codebook, extractor
  codebook            a copy of its own: activated photos are tied to it for ever
  background          codes of strangers, if wanted
  catalogue.sqlite    the truth
  index.faiss         a snapshot; rebuilt from the catalogue when missing or damaged
  writer.lock         held by whoever changes the collection
  snapshot.lock       held by whoever keeps a snapshot
"""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from homing._files import make_folder, sync_folder, temporary_beside, write_atomically
from homing.codebooks import Background, Codebook
from homing.collection.catalogue import Catalogue
from homing.collection.settings import mark_format, open_catalogue, read_settings, write_settings
from homing.errors import CollectionError

BACKGROUND_IDS = 1 << 48  # ids from here on are strangers, not rows of the catalogue


@dataclass(frozen=True)
class Folder:
    """An opened collection folder."""

    path: Path
    codebook: Codebook
    background: Background | None
    catalogue: Catalogue


def create_folder(path: Path, codebook: Codebook, background: Background | None) -> None:
    """Make a new, empty collection; it appears whole or not at all."""
    path = Path(os.path.abspath(path))
    if (path / "collection.toml").is_file():
        about = read_settings(path)
        raise CollectionError(
            f"{path} is a collection already, made with codebook '{about['codebook']}' ({about['fingerprint'][:12]}); "
            "use it as it is, or choose another name"
        )
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise CollectionError(f"{path} exists and is not empty; choose another name for the collection")
    draft = temporary_beside(path)
    try:
        make_folder(draft)
        _fill(draft, codebook, background)
        draft.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise CollectionError(f"cannot make a collection at {path}: {error.strerror}") from error
    finally:
        if draft.exists():
            shutil.rmtree(draft)


def _fill(draft: Path, codebook: Codebook, background: Background | None) -> None:
    strangers = background.to_bytes() if background is not None else None
    write_settings(draft, codebook, strangers)
    write_atomically(draft / "codebook", codebook.to_bytes())
    if strangers is not None:
        write_atomically(draft / "background", strangers)
    with closing(Catalogue(draft / "catalogue.sqlite")) as catalogue:
        catalogue.create()
        mark_format(catalogue)


def open_folder(path: Path) -> Folder:
    """The parts of a collection, checked against what its settings say."""
    if not (path / "collection.toml").is_file():
        raise CollectionError(f"{path} is not a collection; make one with: homing init {path}")
    settings = read_settings(path)
    codebook = Codebook.read(path / "codebook")
    if codebook.fingerprint != settings["fingerprint"]:
        raise CollectionError(
            f"{path} was made with codebook '{settings['codebook']}' ({settings['fingerprint'][:12]}), "
            f"but holds '{codebook.name}' ({codebook.fingerprint[:12]}); put the right codebook back"
        )
    if not (path / "catalogue.sqlite").is_file():
        raise CollectionError(f"{path} has lost its catalogue.sqlite; restore it from a backup")
    strangers = path / "background"
    try:
        data = strangers.read_bytes() if strangers.is_file() else None
    except OSError as error:
        raise CollectionError(f"{strangers} cannot be read: {error.strerror}") from error
    background = Background.from_bytes(data, codebook, str(strangers)) if data is not None else None
    return Folder(path, codebook, background, open_catalogue(path))
