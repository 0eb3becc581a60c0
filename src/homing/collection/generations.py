"""The generations of a collection: one answers, the next is built beside it, the previous one stays until forgotten.

holiday.homing/
  …                 the first generation: a collection as it was made
  generation-2/     the next one: a collection of its own, with another codebook
  current           which one answers, if it is not the first
"""

from __future__ import annotations

import shutil
from pathlib import Path

from homing._files import sync_folder, write_atomically
from homing.errors import CollectionError, UnknownNameError

GENERATIONS = {"previous": -1, "current": 0, "next": 1}
_FILES = ("index.faiss", "background", "catalogue.sqlite-shm", "catalogue.sqlite-wal", "catalogue.sqlite", "codebook")
_SETTINGS = "collection.toml"


def generation(path: Path, which: str = "current") -> Path:
    """The folder of the generation that answers, the next or the previous one, which must be there."""
    if which not in GENERATIONS:
        raise UnknownNameError("generation", which, GENERATIONS)
    folder = place_of(path, which)
    if which != "current" and not (folder / _SETTINGS).is_file():
        raise CollectionError(f"{path} has no {which} generation; homing migrate makes a next one")
    return folder


def place_of(path: Path, which: str) -> Path:
    """Where the folder of a generation is, or would be."""
    number = _current(path) + GENERATIONS[which]
    return path if number == 1 else path / f"generation-{number}"


def make_current(path: Path) -> None:
    """Let the next generation answer from now on; one file changes, so it is this one or that at any instant."""
    generation(path, "next")
    write_atomically(path / "current", f"{_current(path) + 1}\n".encode())


def forget_previous(path: Path) -> None:
    """Delete the previous generation; what a crash leaves of it is deleted by the next call."""
    folder = generation(path, "previous")
    try:
        for name in _FILES:
            (folder / name).unlink(missing_ok=True)
        # The settings last: as long as they are there, there is something to forget.
        (folder / _SETTINGS).unlink()
        if folder == path:
            sync_folder(path)
        else:
            shutil.rmtree(folder)
    except OSError as error:
        raise CollectionError(f"cannot delete {folder}: {error.strerror}") from error


def _current(path: Path) -> int:
    file = path / "current"
    try:
        return int(file.read_text()) if file.is_file() else 1
    except (OSError, ValueError) as error:
        raise CollectionError(f"{file} cannot be read, or is damaged; it holds the number of a generation") from error
