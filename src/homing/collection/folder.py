"""The layout of a collection on disk. Each later generation has a folder with its own copy of these files.

holiday.homing/
  collection.toml     format version, codebook, extractor
  codebook            a private copy: activated photos depend on it permanently
  distractors         codes of distractors (optional)
  catalog.sqlite      references and releases: the source of truth
  index.faiss         a snapshot of the index; rebuilt from the catalog if missing or damaged
  writer.lock         held while the collection changes
  snapshot.lock       held while a snapshot is saved
  uploads.lock        held while a service adds or deletes uploads
  uploads/            photos uploaded to the service or added from memory, and their released files
  audit.jsonl         the service's log of who added, released and removed what
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from homing._io.files import atomic_folder, write_atomically
from homing._io.paths import Location
from homing.codebooks import Codebook, Distractors
from homing.collection._density_ratio import CollectionDensityRatio
from homing.collection.catalog import Catalog
from homing.collection.generations import find_generation, generation_path
from homing.collection.settings import mark_format, open_catalog, read_settings, write_settings
from homing.errors import CollectionError

UPLOADS = "uploads"
FIRST_DISTRACTOR_ID = 1 << 48  # ids from here on belong to distractors, not to rows of the catalog


@dataclass(frozen=True)
class Folder:
    """The opened files of a collection: the user's folder, and the folder of one generation, often the same."""

    root: Path
    path: Path
    codebook: Codebook
    distractors: Distractors | None
    catalog: Catalog

    @cached_property
    def density_ratio(self) -> CollectionDensityRatio:
        """The density ratio of its references."""
        count = 0 if self.distractors is None else len(self.distractors)
        numbers = range(FIRST_DISTRACTOR_ID, FIRST_DISTRACTOR_ID + count)
        return CollectionDensityRatio(self.catalog.descriptors, self.codebook, numbers)


def refuse_if_collection(path: Location) -> None:
    """Raise an error if a collection exists at this path, with any generation current."""
    if ((current := generation_path(path, "current")) / "collection.toml").is_file():
        about = read_settings(current)
        raise CollectionError(
            f"{path} already is a collection, with codebook '{about['codebook']}' ({about['fingerprint'][:12]}); "
            "open it with Collection.open, or choose another name"
        )


def create_folder(
    path: Path,
    codebook: Codebook,
    distractors: Distractors | None,
    fill: Callable[[Path], None] = lambda _: None,
) -> None:
    """Create a collection, complete or not at all. `fill` can add content to its draft folder."""
    path = Path(os.path.abspath(path))
    refuse_if_collection(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise CollectionError(f"{path} exists and is not empty; choose another name for the collection")
    try:
        with atomic_folder(path) as draft:
            _fill(draft, codebook, distractors)
            fill(draft)
    except OSError as error:
        raise CollectionError(f"cannot create a collection at {path}: {error.strerror}") from error


def _fill(draft: Path, codebook: Codebook, distractors: Distractors | None) -> None:
    data = distractors.to_bytes() if distractors is not None else None
    write_settings(draft, codebook, data)
    write_atomically(draft / "codebook", codebook.to_bytes())
    if data is not None:
        write_atomically(draft / "distractors", data)
    with closing(Catalog(draft / "catalog.sqlite")) as catalog:
        catalog.create()
        mark_format(catalog)


def open_folder(root: Path, which: str = "current") -> Folder:
    """Open the files of one generation of a collection, and check them against its settings."""
    path = find_generation(root, which)
    if not (path / "collection.toml").is_file():
        if (path / "catalog.sqlite").is_file():
            raise CollectionError(f"{path} has no collection.toml; repair it with: homing check {root} --repair")
        raise CollectionError(f"{path} is not a collection; make one with Collection.create, or: homing init {path}")
    settings = read_settings(path)
    codebook = Codebook.read(path / "codebook")
    if codebook.fingerprint != settings["fingerprint"]:
        raise CollectionError(
            f"{path} was made with codebook '{settings['codebook']}' ({settings['fingerprint'][:12]}), "
            f"but holds '{codebook.name}' ({codebook.fingerprint[:12]}); restore the right codebook"
        )
    if not (path / "catalog.sqlite").is_file():
        raise CollectionError(f"{path} has no catalog.sqlite; restore it from a backup")
    return Folder(root, path, codebook, read_distractors(path, codebook), open_catalog(path))


def read_distractors(path: Path, codebook: Codebook) -> Distractors | None:
    """Read the distractors of a folder, None if there are none."""
    file = path / "distractors"
    try:
        data = file.read_bytes() if file.is_file() else None
    except OSError as error:
        raise CollectionError(f"{file} cannot be read: {error.strerror}") from error
    return Distractors.from_bytes(data, codebook, str(file)) if data is not None else None
