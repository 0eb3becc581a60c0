"""Uploads that became references: a private folder in the collection's own, each file under its hash and its name.

holiday.homing/
  uploads/                           for the service alone: 0700
    SHA256/beach.jpg                 as it came, under the name it came with
    released/SHA256/beach.jpg        what was released of it
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from homing._files import make_folder, sync_folder, write_atomically
from homing._places import Place, place
from homing.collection import Collection
from homing.collection.folder import UPLOADS
from homing.errors import HomingError
from homing.service.uploads import Upload

_HASH = "[0-9a-f]{64}"


class Keeping:
    """The folder of uploads of one collection."""

    def __init__(self, collection: Collection) -> None:
        self._home = Path(os.path.abspath(collection.folder.home))  # as sources are recorded
        self.folder = self._home / UPLOADS
        self.released = self.folder / "released"
        self._ours = re.compile(rf"/?(?:[^\s'/]+/)*{UPLOADS}/(?:released/)?{_HASH}/")

    def prepare(self) -> None:
        """Make the folder, for nobody else to look into."""
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self.folder.chmod(0o700)
            sync_folder(self._home)
        except OSError as error:
            raise HomingError(f"uploads cannot be kept in {self.folder}: {error.strerror}") from error

    def keep(self, upload: Upload) -> Path:
        """Write an upload into the folder; it is on disk, whole, when this is done."""
        path = self.folder / upload.sha256 / upload.name
        try:
            make_folder(path.parent)
            write_atomically(path, upload.data)
        except OSError as error:
            raise HomingError(f"{upload.name}: cannot be kept: {error.strerror}") from error
        return path

    def drop(self, path: Place) -> None:
        """Remove a file of the folder, and the folder it leaves empty; files elsewhere are left alone."""
        if not isinstance(path, Path) or not path.is_relative_to(self.folder):
            return
        path.unlink(missing_ok=True)
        self.tidy(path.parent)

    def tidy(self, folder: Path) -> None:
        """Remove a folder in which nothing is."""
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()

    def locate(self, source: str) -> Place:
        """Where a recorded file lies; those of this folder are found even if the collection was moved as a whole."""
        recorded = place(source)
        if isinstance(recorded, Path) and re.fullmatch(_HASH, recorded.parent.name):
            for folder in (self.folder, self.released):
                if recorded.parent.parent.name == folder.name:
                    return folder / recorded.parent.name / recorded.name
        return recorded

    def without_paths(self, text: str) -> str:
        """A message without the folders of this machine: files that were uploaded have names, the rest is theirs."""
        return self._ours.sub("", text).replace(str(self._home), "the collection")


def shown_name(source: str) -> str:
    """What a reference is called: the name of its file, without folders of this machine."""
    return place(source).name
