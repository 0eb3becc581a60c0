"""Stored files of photos that were added from memory or uploaded, by hash and name, inside the collection.

holiday.homing/
  uploads/                           private: mode 0700
    SHA256/beach.jpg                 the original file
    released/SHA256/beach.jpg        the file that the service released
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from homing._io.files import fsync_folder, make_folder
from homing._io.paths import Address, Location, location, path_exists, write_file
from homing.collection.outcome import Outcome
from homing.collection.storage import Storage
from homing.collection.storage.layout import UPLOADS
from homing.errors import CollectionError
from homing.photo import FoundPhoto, MemoryPhoto, PhotoFile, as_photos, find_photos
from homing.photo.files import each_once

_HASH = "[0-9a-f]{64}"


class UploadStore:
    """The folder of uploads in a collection."""

    def __init__(self, root: Location, lock: Callable[[], AbstractContextManager[None]]) -> None:
        """`lock` is held during a change. Otherwise another job could delete files that have no reference yet."""
        # Absolute, like the recorded sources.
        self._root = Path(os.path.abspath(root)) if isinstance(root, Path) else root
        self.lock = lock
        self.folder = self._root / UPLOADS
        self.released = self.folder / "released"
        self._own_paths = re.compile(rf"{re.escape(str(self.folder))}/(?:released/)?{_HASH}/")

    def prepare(self) -> None:
        """Create the folder, accessible to the owner only."""
        if isinstance(self.folder, Address) or isinstance(self._root, Address):
            return  # a bucket has no folders, and its own access rules
        with _as_collection_error(f"uploads cannot be saved in {self.folder}"):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self.folder.chmod(0o700)
            fsync_folder(self._root)

    def path_of(self, file: PhotoFile | MemoryPhoto) -> Location:
        """The path of a file in the store, whether it exists or not."""
        return self.folder / file.sha256 / file.name

    def save(self, file: PhotoFile | MemoryPhoto) -> Location:
        """Write a file into the folder. It is complete and on disk when this returns."""
        path = self.path_of(file)
        with _as_collection_error(f"{file.name}: cannot be saved"):
            write_file(path, file.data, new=False)
        return path

    def make_release_folder(self, file: PhotoFile | MemoryPhoto) -> Location:
        """Create the folder for the released file of an upload, and return its path."""
        folder = self.released / file.sha256
        if isinstance(folder, Path):
            with _as_collection_error(f"{file.name}: its released file cannot be saved"):
                make_folder(folder)
        return folder

    def delete(self, path: Location) -> None:
        """Delete a file of the store, and its folder if that is then empty. Ignores files outside the store."""
        if not f"{path}/".startswith(f"{self.folder}/"):
            return
        with _as_collection_error(f"{path.name}: cannot be removed"):
            if path_exists(path):
                path.remove() if isinstance(path, Address) else path.unlink()
        if isinstance(path, Path):
            self.remove_if_empty(path.parent)

    def delete_unless_source(self, file: PhotoFile | MemoryPhoto, storage: Storage) -> None:
        """Delete a stored file that is no reference's source: its photo has another source, or is unreadable."""
        storage.refresh()  # another process may have added the same photo
        path, number = self.path_of(file), storage.find(file.sha256)
        if number is None or self.resolve_source(storage.source_and_state(number)[0]) != path:
            self.delete(path)

    def remove_if_empty(self, folder: Location) -> None:
        """Remove a folder if it is empty. A bucket has none."""
        with _as_collection_error(f"{folder}: cannot be removed"):
            if isinstance(folder, Path) and folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def resolve_source(self, source: str) -> Location:
        """The location of a recorded source. Stored files are found even after the whole collection moved."""
        recorded = location(source)
        if isinstance(recorded, Path) and re.fullmatch(_HASH, recorded.parent.name):
            for folder in (self.folder, self.released):
                if recorded.parent.parent.name == folder.name:
                    return folder / recorded.parent.name / recorded.name
        return recorded

    def redact_paths(self, text: str) -> str:
        """Remove the folders of this machine from a message. Names of uploaded files remain."""
        return self._own_paths.sub("", text).replace(str(self._root), "the collection")


def as_given(photos: Any) -> Sequence[Location | MemoryPhoto | FoundPhoto[Location]]:
    """The photos that `Collection.add` accepts, in order. What `find_photos` found is not listed again."""
    if isinstance(photos, list) and photos and all(isinstance(photo, FoundPhoto) for photo in photos):
        return photos
    return as_photos(photos)


@contextmanager
def files_of(
    photos: Sequence[Location | MemoryPhoto | FoundPhoto[Location]], uploads: UploadStore, storage: Storage
) -> Iterator[list[FoundPhoto[Location]]]:
    """The files of photos and folders, for a job that adds them as references.

    Photos in memory are stored in the uploads first. Those that did not become references are deleted afterwards.
    """
    in_memory = [photo for photo in photos if isinstance(photo, MemoryPhoto)]
    found: list[FoundPhoto[Location]] = []
    for photo in photos:
        if isinstance(photo, MemoryPhoto):
            found.append(FoundPhoto(uploads.path_of(photo), Path(photo.name)))
        else:
            found += [photo] if isinstance(photo, FoundPhoto) else find_photos([photo])
    found = each_once(found)
    with uploads.lock() if in_memory else nullcontext():
        if in_memory:
            uploads.prepare()
        try:
            for photo in in_memory:
                uploads.save(photo)
            yield found
        finally:
            for photo in in_memory:
                uploads.delete_unless_source(photo, storage)


def delete_uploads(removed: Iterable[Outcome], uploads: UploadStore) -> None:
    """Delete the stored files of removed references."""
    for outcome in removed:
        if outcome.state == "removed":
            uploads.delete(uploads.resolve_source(outcome.photo))


@contextmanager
def _as_collection_error(what: str) -> Iterator[None]:
    """Convert errors of the disk to CollectionError, since the photo is not the cause."""
    try:
        yield
    except OSError as error:
        raise CollectionError(f"{what}: {error.strerror}") from error
