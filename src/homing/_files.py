"""Files that are whole or not there at all."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path


def write_atomically(path: Path, data: bytes, *, new: bool = False) -> None:
    """Write a file so that a crash at any instant leaves the old one or the new one, on disk, whole.

    A `new` file is not written over one that somebody put there meanwhile: FileExistsError.
    """
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if new and _linked(temporary, path):
            temporary.unlink()
        else:
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _linked(temporary: Path, path: Path) -> bool:
    """Give a file a second name that nobody else has; False on disks that cannot, such as FAT."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS) and not os.path.lexists(path):
            return False
        raise
    return True


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; where the system has no way to, they are when it says so."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
