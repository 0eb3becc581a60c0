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

from homing._io.files import fsync_folder, make_folder, write_atomically
from homing._io.paths import Location, location
from homing.collection import Collection
from homing.collection._locks import uploads_lock
from homing.collection.folder import UPLOADS
from homing.errors import CollectionError
from homing.service.uploads import Upload

_HASH = "[0-9a-f]{64}"


class UploadStore:
    """The folder of uploads of one collection."""

    def __init__(self, collection: Collection) -> None:
        self._root = Path(os.path.abspath(collection.folder.root))  # as sources are recorded
        self.folder = self._root / UPLOADS
        self.released = self.folder / "released"
        self._own_paths = re.compile(rf"{re.escape(str(self.folder))}/(?:released/)?{_HASH}/")

    def prepare(self) -> None:
        """Make the folder, for nobody else to look into."""
        with _as_collection_error(f"uploads cannot be kept in {self.folder}"):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self.folder.chmod(0o700)
            fsync_folder(self._root)

    def lock(self) -> AbstractContextManager[None]:
        """Hold the folder while a change is made: what is no reference's file yet may be by somebody else, who is busy
        with it, and would be removed."""
        return uploads_lock(self._root)

    def path_of(self, upload: Upload) -> Path:
        """Where an upload is kept, if it is."""
        return self.folder / upload.sha256 / upload.name

    def save(self, upload: Upload) -> Path:
        """Write an upload into the folder; it is on disk, whole, when this is done."""
        path = self.path_of(upload)
        with _as_collection_error(f"{upload.name}: cannot be kept"):
            make_folder(path.parent)
            write_atomically(path, upload.data)
        return path

    def make_release_folder(self, upload: Upload) -> Path:
        """The folder of what is released of an upload; it is there when this is done."""
        folder = self.released / upload.sha256
        with _as_collection_error(f"{upload.name}: what is released of it cannot be kept"):
            make_folder(folder)
        return folder

    def delete(self, path: Location) -> None:
        """Remove a file of the folder, and the folder it leaves empty; files elsewhere are left alone."""
        if not isinstance(path, Path) or not path.is_relative_to(self.folder):
            return
        with _as_collection_error(f"{path.name}: cannot be removed"):
            if os.path.lexists(path):
                path.unlink()
        self.remove_if_empty(path.parent)

    def remove_if_empty(self, folder: Path) -> None:
        """Remove a folder in which nothing is."""
        with _as_collection_error(f"{folder}: cannot be removed"):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def resolve_source(self, source: str) -> Location:
        """Where a recorded file lies; those of this folder are found even if the collection was moved as a whole."""
        recorded = location(source)
        if isinstance(recorded, Path) and re.fullmatch(_HASH, recorded.parent.name):
            for folder in (self.folder, self.released):
                if recorded.parent.parent.name == folder.name:
                    return folder / recorded.parent.name / recorded.name
        return recorded

    def redact_paths(self, text: str) -> str:
        """A message without the folders of this machine: files that were uploaded have names, the rest is theirs."""
        return self._own_paths.sub("", text).replace(str(self._root), "the collection")


@contextmanager
def _as_collection_error(what: str) -> Iterator[None]:
    """What a disk refuses is a failure of ours: the photo is not to blame."""
    try:
        yield
    except OSError as error:
        raise CollectionError(f"{what}: {error.strerror}") from error


def display_name(source: str) -> str:
    """What a reference is called: the name of its file, without folders of this machine."""
    return location(source).name
