"""One writer at a time; readers are never held up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from homing.collection.folder import Folder
from homing.collection.generations import generation_path
from homing.errors import BusyError, CollectionError


@contextmanager
def lock_for_writing(folder: Folder) -> Iterator[None]:
    """Hold a collection while its references are changed, in the generation that answers: no other is written to."""
    with writer_lock(folder.root):
        if folder.path != generation_path(folder.root, "current"):
            raise CollectionError(
                f"{folder.root} is not changed in this generation, since another one answers; open the collection again"
            )
        yield


@contextmanager
def writer_lock(root: Path) -> Iterator[None]:
    """Hold a collection while it is changed; whoever comes second is told so at once: BusyError."""
    with _hold(root, "writer.lock"):
        yield


@contextmanager
def snapshot_lock(root: Path) -> Iterator[None]:
    """Hold the snapshots of the index while one is kept, which readers do as well: no writer is refused for that."""
    with _hold(root, "snapshot.lock"):
        yield


@contextmanager
def uploads_lock(root: Path) -> Iterator[None]:
    """Hold the uploads of a collection while files come and go there, of services over one collection: BusyError."""
    with _hold(root, "uploads.lock"):
        yield


@contextmanager
def _hold(root: Path, name: str) -> Iterator[None]:
    """Hold a lock; the system lets go of it when a process ends, however it ends."""
    if not root.is_dir():  # the lock would make it anew
        raise CollectionError(f"{root} cannot be changed: it is not there any more")
    # Of its own for each job: the same lock taken twice, by another thread or by the same one, is refused as well.
    lock = FileLock(root / name)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BusyError(f"{root} is being changed by somebody else; try again when that is done") from None
    except OSError as error:
        raise CollectionError(f"{root} cannot be changed: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()
