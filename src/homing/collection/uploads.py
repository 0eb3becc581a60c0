"""Files of photos that were given in memory or uploaded: each under its hash and its name, below the collection.

holiday.homing/
  uploads/                           private: mode 0700
    SHA256/beach.jpg                 as it was given, under its name
    released/SHA256/beach.jpg        what the service released of it
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Protocol

from homing._io.files import fsync_folder, make_folder, write_atomically
from homing._io.paths import Address, Location, is_inside, location
from homing.collection._locks import uploads_lock
from homing.collection.catalog import Catalog
from homing.collection.folder import UPLOADS
from homing.collection.outcome import Outcome
from homing.errors import CollectionError
from homing.photo import FoundPhoto, MemoryPhoto, find_photos
from homing.photo.folders import each_once

_HASH = "[0-9a-f]{64}"


class UploadedFile(Protocol):
    """A file in memory."""

    @property
    def name(self) -> str:
        """Its name, without folders."""

    @property
    def data(self) -> bytes:
        """Its bytes."""

    @property
    def sha256(self) -> str:
        """The hash of its bytes."""


class UploadStore:
    """The folder of uploads of one collection."""

    def __init__(self, root: Location, *, exclusive: bool = True) -> None:
        """Without `exclusive` several processes may change the folder at once, as those of a collection in Lance do."""
        self._root = Path(os.path.abspath(root)) if isinstance(root, Path) else root  # as sources are recorded
        self._exclusive = exclusive
        self.folder = self._root / UPLOADS
        self.released = self.folder / "released"
        self._own_paths = re.compile(rf"{re.escape(str(self.folder))}/(?:released/)?{_HASH}/")

    def prepare(self) -> None:
        """Make the folder, for nobody else to look into."""
        if isinstance(self.folder, Address) or isinstance(self._root, Address):
            return  # a bucket has no folders, and its own rules on who may read
        with _as_collection_error(f"uploads cannot be kept in {self.folder}"):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self.folder.chmod(0o700)
            fsync_folder(self._root)

    def lock(self) -> AbstractContextManager[None]:
        """Hold the folder during a change: files that are no reference's yet would be removed by another job."""
        if not self._exclusive or isinstance(self._root, Address):
            return nullcontext()
        return uploads_lock(self._root)

    def path_of(self, file: UploadedFile) -> Location:
        """Where a file is kept, if it is."""
        return self.folder / file.sha256 / file.name

    def save(self, file: UploadedFile) -> Location:
        """Write a file into the folder; it is on disk, whole, when this is done."""
        path = self.path_of(file)
        with _as_collection_error(f"{file.name}: cannot be kept"):
            if isinstance(path, Address):
                path.write(file.data, new=False)
            else:
                make_folder(path.parent)
                write_atomically(path, file.data)
        return path

    def make_release_folder(self, file: UploadedFile) -> Path:
        """The folder of what is released of an upload to a service; it is there when this is done."""
        folder = self.released / file.sha256
        assert isinstance(folder, Path)  # a service has its collection on its own disk
        with _as_collection_error(f"{file.name}: what is released of it cannot be kept"):
            make_folder(folder)
        return folder

    def delete(self, path: Location) -> None:
        """Remove a file of the folder, and the folder it leaves empty; files elsewhere are left alone."""
        if isinstance(path, Address):
            if is_inside(path, self.folder):
                with _as_collection_error(f"{path.name}: cannot be removed"):
                    if path.exists():
                        path.remove()
            return
        if isinstance(self.folder, Address) or not path.is_relative_to(self.folder):
            return
        with _as_collection_error(f"{path.name}: cannot be removed"):
            if os.path.lexists(path):
                path.unlink()
        self.remove_if_empty(path.parent)

    def delete_unless_source(self, file: UploadedFile, catalog: Catalog) -> None:
        """Remove a kept file that no reference came from: it was known under another name, or could not be read."""
        path, number = self.path_of(file), catalog.find(file.sha256)
        if number is None or self.resolve_source(catalog.source_and_state(number)[0]) != path:
            self.delete(path)

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
        """A message without the folders of this machine: files that were uploaded have names, the rest is private."""
        return self._own_paths.sub("", text).replace(str(self._root), "the collection")


@contextmanager
def files_of(
    photos: Sequence[Location | MemoryPhoto], uploads: UploadStore, catalog: Catalog
) -> Iterator[list[FoundPhoto[Location]]]:
    """The files of photos and of folders of photos, for a job that makes references of them.

    Photos in memory are kept in the folder of uploads; afterwards those that no reference came from are removed.
    """
    in_memory = [photo for photo in photos if isinstance(photo, MemoryPhoto)]
    found = each_once(
        item
        for photo in photos
        for item in (
            [FoundPhoto(uploads.path_of(photo), Path(photo.name))]
            if isinstance(photo, MemoryPhoto)
            else find_photos([photo])
        )
    )
    if not in_memory:
        yield found
        return
    with uploads.lock():
        uploads.prepare()
        try:
            for photo in in_memory:
                uploads.save(photo)
            yield found
        finally:
            for photo in in_memory:
                uploads.delete_unless_source(photo, catalog)


def delete_uploads(removed: Iterable[Outcome], uploads: UploadStore) -> None:
    """Delete the kept files of references that were removed."""
    for outcome in removed:
        if outcome.state == "removed":
            uploads.delete(uploads.resolve_source(str(outcome.photo)))


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
