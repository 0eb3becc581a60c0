"""Files that a bench cannot do without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from homing.errors import HomingError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in one line which file could not be written, and why."""
    try:
        yield
    except OSError as error:
        raise HomingError(f"cannot write {path}: {error.strerror}") from error
