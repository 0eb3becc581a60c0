"""Atomic files: complete, or not present."""

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
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from homing.errors import HomingError

TEMPORARY_NAME = re.compile(r"\.[0-9a-f]{16}\.tmp")
"""The names of what is being written: hidden, so that what a kill leaves is taken for nothing else."""


def temporary_path(path: Path) -> Path:
    """A temporary name for a file or folder that is being written."""
    return path.with_name(f".{secrets.token_hex(8)}.tmp")


def write_atomically(path: Path, data: bytes, *, new: bool = False) -> None:
    """Write a file so that a crash at any instant leaves the old one or the new one, on disk, whole.

    A `new` file is not written over one that somebody put there meanwhile: FileExistsError.
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
    """Give a file a second name that nobody else has; False on disks that cannot, such as FAT."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS) and not os.path.lexists(path):
            return False
        raise
    return True


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, where they are missing; their names are on disk by then."""
    missing = list(takewhile(lambda each: not each.exists(), (folder, *folder.parents)))
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        fsync_folder(each.parent)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A draft to fill, which takes the folder's name when it is done: the folder appears whole or not at all.

    What stands under the name must be an empty folder, or nothing.
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


def folder_size(folder: Path) -> int:
    """How much the files in a folder take, at any depth, but for those that somebody removes meanwhile."""
    total = 0
    for inside, _, names in os.walk(folder):  # unlike rglob it passes over folders that vanish
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(inside, name).stat().st_size
    return total


def prepare_output_folder(folder: Path) -> None:
    """Make the folder that results go into; says at once, before the work, that nothing can be written there."""
    try:
        make_folder(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise HomingError(f"cannot write into the out folder {folder}: {error.strerror}") from error


def prepare_output_file(file: Path, suffix: str) -> None:
    """Make the folder of one result; says at once that it cannot be written, or has a name as of another kind of file.

    A result may be written over an earlier one, but never over a photo or a part of a collection.
    """
    if file.suffix.lower() != suffix:
        raise HomingError(f"what is written ends in {suffix}, got {file}; choose another name")
    if file.is_dir():
        raise HomingError(f"cannot write {file}: it is a folder; choose another name")
    prepare_output_folder(file.parent)


def is_case_insensitive(folder: Path) -> bool:
    """Whether names that differ in case alone are one name in a folder, as on FAT."""
    probe = temporary_path(folder / "probe")
    probe.touch(exist_ok=False)
    try:
        return probe.with_name(probe.name.upper()).exists()
    finally:
        probe.unlink()


@contextmanager
def report_write_errors(path: Path) -> Iterator[None]:
    """Say in one line which file could not be written, and why."""
    try:
        yield
    except OSError as error:
        raise HomingError(f"cannot write {path}: {error.strerror}") from error


def read_safetensors_metadata(data: bytes, key: str) -> dict[str, Any]:
    """What the bytes of a safetensors file say about it under this key, as JSON; ValueError or KeyError if nothing."""
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    metadata: dict[str, Any] = json.loads(header["__metadata__"][key])
    return metadata


def fsync_folder(folder: Path) -> None:
    """Make the names in a folder durable; where the system has no way to, they are when it says so."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def create_memmap(path: Path, shape: tuple[int, ...], dtype: type[np.generic]) -> np.ndarray:
    """An array of zeros in a file, mapped into memory. The room is taken at once: a disk that fills up later kills."""
    if math.prod(shape) * np.dtype(dtype).itemsize > shutil.disk_usage(path.parent).free:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # before numbers too large for NumPy get there
    array = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    if hasattr(os, "posix_fallocate"):
        try:
            with path.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        except OSError:
            path.unlink()
            raise
    return array
