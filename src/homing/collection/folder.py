"""A collection on disk: what lies in its folder, or in that of each of its generations.

holiday.homing/
  collection.toml     format version, codebook, extractor
  codebook            a copy of its own: activated photos are tied to it for ever
  distractors         codes of distractors, if wanted
  catalog.sqlite    the truth
  index.faiss         a snapshot; rebuilt from the catalog when missing or damaged
  writer.lock         held by whoever changes the collection
  snapshot.lock       held by whoever keeps a snapshot
  uploads.lock        held by a service while files come and go in its uploads
  uploads/            photos that came to the service, and what was released of them
  audit.jsonl         who added, released and removed what, by way of the service
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
FIRST_DISTRACTOR_ID = 1 << 48  # ids from here on are distractors, not rows of the catalog


@dataclass(frozen=True)
class Folder:
    """An opened collection: the folder a user names, and in it that of one generation, most often the same."""

    root: Path
    path: Path
    codebook: Codebook
    distractors: Distractors | None
    catalog: Catalog

    @cached_property
    def density_ratio(self) -> CollectionDensityRatio:
        """How much alike its photos are."""
        count = 0 if self.distractors is None else len(self.distractors)
        numbers = range(FIRST_DISTRACTOR_ID, FIRST_DISTRACTOR_ID + count)
        return CollectionDensityRatio(self.catalog.descriptors, self.codebook, numbers)


def refuse_if_collection(path: Location) -> None:
    """Say so where a collection is there already, whichever of its generations answers."""
    if ((current := generation_path(path, "current")) / "collection.toml").is_file():
        about = read_settings(current)
        raise CollectionError(
            f"{path} is a collection already, made with codebook '{about['codebook']}' ({about['fingerprint'][:12]}); "
            "use it as it is, or choose another name"
        )


def create_folder(
    path: Path,
    codebook: Codebook,
    distractors: Distractors | None,
    fill: Callable[[Path], None] = lambda _: None,
) -> None:
    """Make a new collection; it appears whole or not at all. It is empty but for what `fill` puts into its draft."""
    path = Path(os.path.abspath(path))
    refuse_if_collection(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise CollectionError(f"{path} exists and is not empty; choose another name for the collection")
    try:
        with atomic_folder(path) as draft:
            _fill(draft, codebook, distractors)
            fill(draft)
    except OSError as error:
        raise CollectionError(f"cannot make a collection at {path}: {error.strerror}") from error


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
    """The parts of a collection, checked against what its settings say; of the generation that answers, or another."""
    path = find_generation(root, which)
    if not (path / "collection.toml").is_file():
        if (path / "catalog.sqlite").is_file():
            raise CollectionError(f"{path} has lost its collection.toml; repair it with: homing check {root} --repair")
        raise CollectionError(f"{path} is not a collection; make one with: homing init {path}")
    settings = read_settings(path)
    codebook = Codebook.read(path / "codebook")
    if codebook.fingerprint != settings["fingerprint"]:
        raise CollectionError(
            f"{path} was made with codebook '{settings['codebook']}' ({settings['fingerprint'][:12]}), "
            f"but holds '{codebook.name}' ({codebook.fingerprint[:12]}); put the right codebook back"
        )
    if not (path / "catalog.sqlite").is_file():
        raise CollectionError(f"{path} has lost its catalog.sqlite; restore it from a backup")
    return Folder(root, path, codebook, read_distractors(path, codebook), open_catalog(path))


def read_distractors(path: Path, codebook: Codebook) -> Distractors | None:
    """The distractors in a folder, if there are some."""
    file = path / "distractors"
    try:
        data = file.read_bytes() if file.is_file() else None
    except OSError as error:
        raise CollectionError(f"{file} cannot be read: {error.strerror}") from error
    return Distractors.from_bytes(data, codebook, str(file)) if data is not None else None
