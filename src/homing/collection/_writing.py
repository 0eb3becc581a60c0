"""One writer at a time; readers are never held up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from homing.errors import BusyError, CollectionError


@contextmanager
def one_writer(folder: Path) -> Iterator[None]:
    """Hold a collection while it is changed; whoever comes second is told so at once: BusyError."""
    with _held(folder, "writer.lock"):
        yield


@contextmanager
def one_keeper(folder: Path) -> Iterator[None]:
    """Hold the snapshot of the index while it is kept, which readers do as well: no writer is refused for that."""
    with _held(folder, "snapshot.lock"):
        yield


@contextmanager
def _held(folder: Path, name: str) -> Iterator[None]:
    """Hold a lock; the system lets go of it when a process ends, however it ends."""
    if not folder.is_dir():  # the lock would make it anew
        raise CollectionError(f"{folder} cannot be changed: it is not there any more")
    # Of its own for each job: the same lock taken twice, by another thread or by the same one, is refused as well.
    lock = FileLock(folder / name)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BusyError(f"{folder} is being changed by somebody else; try again when that is done") from None
    except OSError as error:
        raise CollectionError(f"{folder} cannot be changed: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()
