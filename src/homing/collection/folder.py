"""A collection on disk: what lies in its folder, or in that of each of its generations.

holiday.homing/
  collection.toml     format version, codebook, extractor
  codebook            a copy of its own: activated photos are tied to it for ever
  background          codes of strangers, if wanted
  catalogue.sqlite    the truth
  index.faiss         a snapshot; rebuilt from the catalogue when missing or damaged
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

from homing._files import whole_folder, write_atomically
from homing._places import Place
from homing.codebooks import Background, Codebook
from homing.collection._likeness import CollectionLikeness
from homing.collection.catalogue import Catalogue
from homing.collection.generations import generation, place_of
from homing.collection.settings import mark_format, open_catalogue, read_settings, write_settings
from homing.errors import CollectionError

UPLOADS = "uploads"
BACKGROUND_IDS = 1 << 48  # ids from here on are strangers, not rows of the catalogue


@dataclass(frozen=True)
class Folder:
    """An opened collection: the folder a user names, and in it that of one generation, most often the same."""

    home: Path
    path: Path
    codebook: Codebook
    background: Background | None
    catalogue: Catalogue

    @cached_property
    def likeness(self) -> CollectionLikeness:
        """How much alike its photos are."""
        strangers = 0 if self.background is None else len(self.background)
        numbers = range(BACKGROUND_IDS, BACKGROUND_IDS + strangers)
        return CollectionLikeness(self.catalogue.descriptors, self.codebook, numbers)


def refuse_if_collection(path: Place) -> None:
    """Say so where a collection is there already, whichever of its generations answers."""
    if ((current := place_of(path, "current")) / "collection.toml").is_file():
        about = read_settings(current)
        raise CollectionError(
            f"{path} is a collection already, made with codebook '{about['codebook']}' ({about['fingerprint'][:12]}); "
            "use it as it is, or choose another name"
        )


def create_folder(
    path: Path,
    codebook: Codebook,
    background: Background | None,
    fill: Callable[[Path], None] = lambda _: None,
) -> None:
    """Make a new collection; it appears whole or not at all. It is empty but for what `fill` puts into its draft."""
    path = Path(os.path.abspath(path))
    refuse_if_collection(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise CollectionError(f"{path} exists and is not empty; choose another name for the collection")
    try:
        with whole_folder(path) as draft:
            _fill(draft, codebook, background)
            fill(draft)
    except OSError as error:
        raise CollectionError(f"cannot make a collection at {path}: {error.strerror}") from error


def _fill(draft: Path, codebook: Codebook, background: Background | None) -> None:
    strangers = background.to_bytes() if background is not None else None
    write_settings(draft, codebook, strangers)
    write_atomically(draft / "codebook", codebook.to_bytes())
    if strangers is not None:
        write_atomically(draft / "background", strangers)
    with closing(Catalogue(draft / "catalogue.sqlite")) as catalogue:
        catalogue.create()
        mark_format(catalogue)


def open_folder(home: Path, which: str = "current") -> Folder:
    """The parts of a collection, checked against what its settings say; of the generation that answers, or another."""
    path = generation(home, which)
    if not (path / "collection.toml").is_file():
        if (path / "catalogue.sqlite").is_file():
            raise CollectionError(f"{path} has lost its collection.toml; mend it with: homing check {home} --repair")
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
    return Folder(home, path, codebook, read_background(path, codebook), open_catalogue(path))


def read_background(path: Path, codebook: Codebook) -> Background | None:
    """The strangers in a folder, if there are some."""
    strangers = path / "background"
    try:
        data = strangers.read_bytes() if strangers.is_file() else None
    except OSError as error:
        raise CollectionError(f"{strangers} cannot be read: {error.strerror}") from error
    return Background.from_bytes(data, codebook, str(strangers)) if data is not None else None
