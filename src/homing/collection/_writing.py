"""One writer at a time; readers are never held up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from homing.errors import BusyError, CollectionError


@contextmanager
def one_writer(folder: Path) -> Iterator[None]:
    """Hold a collection while it is changed; whoever comes second is told so at once: BusyError.

    The system lets go of it when a process ends, however it ends.
    """
    if not folder.is_dir():  # the lock would make it anew
        raise CollectionError(f"{folder} cannot be changed: it is not there any more")
    # Of its own for each job: the same lock taken twice, by another thread or by the same one, is refused as well.
    lock = FileLock(folder / "writer.lock")
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
