"""Atomic files: complete, or not present. fsspec's local files are neither flushed to disk nor created exclusively."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from homing.errors import HomingError

TEMPORARY_NAME = re.compile(r"\.[0-9a-f]{16}\.tmp")
"""Names of temporary files: hidden, so that files left by a killed process are recognized."""


def temporary_path(path: Path) -> Path:
    """A temporary name for a file or folder that is being written."""
    return path.with_name(f".{secrets.token_hex(8)}.tmp")


def write_atomically(path: Path, data: bytes, *, new: bool = False) -> None:
    """Write a file atomically: after a crash at any time, either the old or the new file is complete on disk.

    With `new`, raise FileExistsError instead of replacing a file.
    """
    temporary = temporary_path(path)
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if new and _hard_link(temporary, path):
            temporary.unlink()
        else:
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    fsync_folder(path.parent)


def _hard_link(temporary: Path, path: Path) -> bool:
    """Give a file a second, new name; False on file systems without hard links, such as FAT."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS) and not os.path.lexists(path):
            return False
        raise
    return True


def make_folder(folder: Path) -> None:
    """Make a folder and its missing parents, and flush their names to disk."""
    missing = list(takewhile(lambda each: not each.exists(), (folder, *folder.parents)))
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        fsync_folder(each.parent)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Fill a temporary folder that is renamed to `path` at the end, so that the folder appears complete or not at all.

    `path` must be an empty folder or not exist.
    """
    draft = temporary_path(path)
    try:
        make_folder(draft)
        yield draft
        fsync_folder(draft)
        draft.replace(path)
        fsync_folder(path.parent)
    finally:
        if draft.exists():
            shutil.rmtree(draft)


def prepare_output_folder(folder: Path) -> None:
    """Make the output folder; HomingError, before any work, if it is not writable."""
    try:
        make_folder(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise HomingError(f"cannot write into the out folder {folder}: {error.strerror}") from error


def prepare_output_file(file: Path, suffix: str) -> None:
    """Make the folder of one output file; HomingError, before any work, if the file cannot be written.

    The suffix must match, so that no photo and no part of a collection is overwritten.
    """
    if file.suffix.lower() != suffix:
        raise HomingError(f"the name of the output file must end in {suffix}, got {file}; choose another name")
    if file.is_dir():
        raise HomingError(f"cannot write {file}: it is a folder; choose another name")
    prepare_output_folder(file.parent)


def is_case_insensitive(folder: Path) -> bool:
    """Whether names in a folder are case-insensitive, as on FAT."""
    probe = temporary_path(folder / "probe")
    probe.touch(exist_ok=False)
    try:
        return probe.with_name(probe.name.upper()).exists()
    finally:
        probe.unlink()


def format_size(count: float) -> str:
    """A number of bytes as text, such as 70 KB or 1.0 MB."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if count >= 0.9995 * size:
            return f"{count / size:,.1f} {unit}"
    return f"{max(1, round(count / 1e3))} KB"


@contextmanager
def report_write_errors(path: Path) -> Iterator[None]:
    """Turn an OSError into a one-line HomingError that names the file."""
    try:
        yield
    except OSError as error:
        raise HomingError(f"cannot write {path}: {error.strerror}") from error


def read_safetensors_metadata(data: bytes, key: str) -> dict[str, Any]:
    """JSON metadata of a safetensors file under this key; ValueError or KeyError if there is none."""
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    metadata: dict[str, Any] = json.loads(header["__metadata__"][key])
    return metadata


def fsync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk. Windows has no way to do this."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def create_memmap(path: Path, shape: tuple[int, ...], dtype: type[np.generic]) -> np.ndarray:
    """A memory-mapped file of zeros. Disk space is allocated now, because a full disk later kills the process."""
    if math.prod(shape) * np.dtype(dtype).itemsize > shutil.disk_usage(path.parent).free:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # before NumPy fails on sizes too large for it
    array = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    if hasattr(os, "posix_fallocate"):
        try:
            with path.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        except OSError:
            path.unlink()
            raise
    return array
