"""One writer at a time; readers are never held up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from homing.collection.folder import Folder
from homing.collection.generations import place_of
from homing.errors import BusyError, CollectionError


@contextmanager
def changing(folder: Folder) -> Iterator[None]:
    """Hold a collection while its references are changed, in the generation that answers: no other is written to."""
    with one_writer(folder.home):
        if folder.path != place_of(folder.home, "current"):
            raise CollectionError(
                f"{folder.home} is not changed in this generation, since another one answers; open the collection again"
            )
        yield


@contextmanager
def one_writer(home: Path) -> Iterator[None]:
    """Hold a collection while it is changed; whoever comes second is told so at once: BusyError."""
    with _held(home, "writer.lock"):
        yield


@contextmanager
def one_keeper(home: Path) -> Iterator[None]:
    """Hold the snapshots of the index while one is kept, which readers do as well: no writer is refused for that."""
    with _held(home, "snapshot.lock"):
        yield


@contextmanager
def one_host(home: Path) -> Iterator[None]:
    """Hold the uploads of a collection while files come and go there, of services over one collection: BusyError."""
    with _held(home, "uploads.lock"):
        yield


@contextmanager
def _held(home: Path, name: str) -> Iterator[None]:
    """Hold a lock; the system lets go of it when a process ends, however it ends."""
    if not home.is_dir():  # the lock would make it anew
        raise CollectionError(f"{home} cannot be changed: it is not there any more")
    # Of its own for each job: the same lock taken twice, by another thread or by the same one, is refused as well.
    lock = FileLock(home / name)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BusyError(f"{home} is being changed by somebody else; try again when that is done") from None
    except OSError as error:
        raise CollectionError(f"{home} cannot be changed: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()
