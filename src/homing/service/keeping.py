"""Uploads that became references: a private folder in the collection's own, each file under its hash and its name.

holiday.homing/
  uploads/                           for the service alone: 0700
    SHA256/beach.jpg                 as it came, under the name it came with
    released/SHA256/beach.jpg        what was released of it
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from homing._files import make_folder, sync_folder, write_atomically
from homing._places import Place, place
from homing.collection import Collection
from homing.collection._writing import one_host
from homing.collection.folder import UPLOADS
from homing.errors import CollectionError
from homing.service.uploads import Upload

_HASH = "[0-9a-f]{64}"


class Keeping:
    """The folder of uploads of one collection."""

    def __init__(self, collection: Collection) -> None:
        self._home = Path(os.path.abspath(collection.folder.home))  # as sources are recorded
        self.folder = self._home / UPLOADS
        self.released = self.folder / "released"
        self._ours = re.compile(rf"{re.escape(str(self.folder))}/(?:released/)?{_HASH}/")

    def prepare(self) -> None:
        """Make the folder, for nobody else to look into."""
        with _told(f"uploads cannot be kept in {self.folder}"):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self.folder.chmod(0o700)
            sync_folder(self._home)

    def held(self) -> AbstractContextManager[None]:
        """Hold the folder while a change is made: what is no reference's file yet may be by somebody else, who is busy
        with it, and would be removed."""
        return one_host(self._home)

    def place_of(self, upload: Upload) -> Path:
        """Where an upload is kept, if it is."""
        return self.folder / upload.sha256 / upload.name

    def keep(self, upload: Upload) -> Path:
        """Write an upload into the folder; it is on disk, whole, when this is done."""
        path = self.place_of(upload)
        with _told(f"{upload.name}: cannot be kept"):
            make_folder(path.parent)
            write_atomically(path, upload.data)
        return path

    def room_for_release(self, upload: Upload) -> Path:
        """The folder of what is released of an upload; it is there when this is done."""
        folder = self.released / upload.sha256
        with _told(f"{upload.name}: what is released of it cannot be kept"):
            make_folder(folder)
        return folder

    def drop(self, path: Place) -> None:
        """Remove a file of the folder, and the folder it leaves empty; files elsewhere are left alone."""
        if not isinstance(path, Path) or not path.is_relative_to(self.folder):
            return
        with _told(f"{path.name}: cannot be removed"):
            if os.path.lexists(path):
                path.unlink()
        self.tidy(path.parent)

    def tidy(self, folder: Path) -> None:
        """Remove a folder in which nothing is."""
        with _told(f"{folder}: cannot be removed"):
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


@contextmanager
def _told(what: str) -> Iterator[None]:
    """What a disk refuses is a failure of ours: the photo is not to blame."""
    try:
        yield
    except OSError as error:
        raise CollectionError(f"{what}: {error.strerror}") from error


def shown_name(source: str) -> str:
    """What a reference is called: the name of its file, without folders of this machine."""
    return place(source).name
