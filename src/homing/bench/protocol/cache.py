"""Cached results of interrupted runs: arrays filled batch by batch, in files named by a hash of their inputs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from homing._io.files import create_memmap, report_write_errors, write_atomically


class CachedArray:
    """An array in a file whose first rows are filled, with a JSON file beside it: the number of rows and metadata.

    A second run with the same file and shape resumes where the first one stopped. A damaged file is replaced.
    """

    def __init__(self, file: Path, shape: tuple[int, ...], dtype: type[np.generic]) -> None:
        self._file, self._metadata_file = file, file.with_suffix(".json")
        self.metadata: dict[str, Any] = {}
        self.count = 0
        with report_write_errors(file):
            array = self._load(shape, dtype)
            if array is None:
                self._metadata_file.unlink(missing_ok=True)  # it describes rows that no longer exist
                array = create_memmap(file, shape, dtype)
            self._array = array

    @property
    def rows(self) -> np.ndarray:
        """The filled rows."""
        return self._array[: self.count]

    def append(self, rows: np.ndarray, **metadata: object) -> None:
        """Fill the next rows and flush them to disk."""
        with report_write_errors(self._file):
            self._array[self.count : self.count + len(rows)] = rows
            assert isinstance(self._array, np.memmap)
            self._array.flush()
            self.count += len(rows)
            self.metadata = metadata
            write_atomically(self._metadata_file, json.dumps({"rows": self.count, **metadata}, indent=2).encode())

    def _load(self, shape: tuple[int, ...], dtype: type[np.generic]) -> np.ndarray | None:
        """The array of an earlier run, or None if it is missing, damaged or of another shape."""
        try:
            metadata = json.loads(self._metadata_file.read_text())
            np.lib.format.open_memmap(self._file, mode="r")  # raises for a truncated file; "r+" would extend it
            array = np.lib.format.open_memmap(self._file, mode="r+")
            count = int(metadata.pop("rows"))
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, EOFError):
            return None
        if array.shape != shape or array.dtype != dtype or not 0 <= count <= len(array):
            return None
        self.metadata, self.count = metadata, count
        return array


def cache_key(*inputs: object) -> str:
    """A short hash of all inputs of a cached result, for its file name."""
    return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:16]


def file_state(path: Path) -> list[int]:
    """Size and modification time of a file, to detect changes without reading it; empty if the file is missing."""
    try:
        stat = path.stat()
    except OSError:
        return []
    return [stat.st_size, stat.st_mtime_ns]
