"""Locks: one writer at a time. Readers never wait."""

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
    """Lock a collection while its references change. Only the current generation can be written to."""
    with writer_lock(folder.root):
        if folder.path != generation_path(folder.root, "current"):
            raise CollectionError(
                f"{folder.root}: this generation is not the current one and cannot be changed; open it again"
            )
        yield


@contextmanager
def writer_lock(root: Path) -> Iterator[None]:
    """Lock a collection while it changes. Raises BusyError at once if another writer holds the lock."""
    with _hold(root, "writer.lock"):
        yield


@contextmanager
def snapshot_lock(root: Path) -> Iterator[None]:
    """Lock the index snapshots while one is saved. Readers save snapshots too, so writers use a separate lock."""
    with _hold(root, "snapshot.lock"):
        yield


@contextmanager
def uploads_lock(root: Path) -> Iterator[None]:
    """Lock the uploads of a collection while a service adds or deletes files. Raises BusyError if they are locked."""
    with _hold(root, "uploads.lock"):
        yield


@contextmanager
def _hold(root: Path, name: str) -> Iterator[None]:
    """Hold a file lock. The operating system releases it when the process ends, even after a crash."""
    if not root.is_dir():  # locking would create the folder
        raise CollectionError(f"{root} cannot be changed: it does not exist any more")
    # A new lock object for each job, so that a second acquisition fails even within one process or thread.
    lock = FileLock(root / name)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BusyError(f"another process is changing {root}; try again when it has finished") from None
    except OSError as error:
        raise CollectionError(f"{root} cannot be changed: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()
