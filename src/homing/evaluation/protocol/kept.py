"""What outlasts an interruption: rows of numbers that are filled batch by batch, under a hash of what decides them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from homing._files import new_array, write_atomically, writing


class KeptRows:
    """An array in a file whose first rows are filled; the JSON file beside it says how many, and what else is told.

    A second run with the same file and shape goes on where the first one stopped. What is damaged is begun anew.
    """

    def __init__(self, file: Path, shape: tuple[int, ...], dtype: type[np.generic]) -> None:
        self._file, self._about = file, file.with_suffix(".json")
        self.said: dict[str, Any] = {}
        self.count = 0
        with writing(file):
            array = self._kept(shape, dtype)
            if array is None:
                self._about.unlink(missing_ok=True)  # or it would speak for the new rows, which are empty
                array = new_array(file, shape, dtype)
            self._array = array

    @property
    def rows(self) -> np.ndarray:
        """The rows that are filled."""
        return self._array[: self.count]

    def add(self, rows: np.ndarray, **said: object) -> None:
        """Fill the next rows; once this returns they are on the disk."""
        with writing(self._file):
            self._array[self.count : self.count + len(rows)] = rows
            assert isinstance(self._array, np.memmap)
            self._array.flush()
            self.count += len(rows)
            self.said = said
            write_atomically(self._about, json.dumps({"rows": self.count, **said}, indent=2).encode())

    def _kept(self, shape: tuple[int, ...], dtype: type[np.generic]) -> np.ndarray | None:
        """What an earlier run left, if it is whole."""
        try:
            said = json.loads(self._about.read_text())
            np.lib.format.open_memmap(self._file, mode="r")  # refuses a file that was cut off; the next mends it
            array = np.lib.format.open_memmap(self._file, mode="r+")
            count = int(said.pop("rows"))
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, EOFError):
            return None
        if array.shape != shape or array.dtype != dtype or not 0 <= count <= len(array):
            return None
        self.said, self.count = said, count
        return array


def key_of(*about: object) -> str:
    """A short hash of all that decides what is kept, as a part of its file's name."""
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]


def state_of(path: Path) -> list[int]:
    """What changes when a file does: its size and time; to read it would take long. Nothing if it is gone."""
    try:
        about = path.stat()
    except OSError:
        return []
    return [about.st_size, about.st_mtime_ns]
