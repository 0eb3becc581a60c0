"""The engines that benchmarks/scale.py measures: each takes references piece by piece, is kept, opened and searched.

Another engine is another class here, of the same four methods, and its name in ENGINES.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from torch import Tensor

from homing.codebooks import Codebook
from homing.indexes import FaissIndex, LanceIndex
from homing.indexes.lance import CODE, VECTOR, load_lance, refresh_index, to_list_column

Search = Callable[[Tensor, int | None], object]  # for (1, D) descriptors, at so many probes or as many as stay fast


class Engine(Protocol):
    """An index that grows in a folder of its own."""

    def __init__(self, folder: Path, codebook: Codebook) -> None:
        """An empty index."""

    def add(self, ids: np.ndarray, codes: np.ndarray, descriptors: Tensor) -> None:
        """Take references: codes and descriptors are of the same ones; an engine uses what it needs."""

    def save(self) -> None:
        """Bring all of it to the folder, so that another process can open it."""

    @classmethod
    def open(cls, folder: Path, codebook: Codebook) -> tuple[Search, Callable[[int | None], int]]:
        """What searches the folder, and what says into how many cells it looks when asked for so many probes."""


class Faiss:
    """The index in memory, kept in one file as a collection keeps its snapshot."""

    def __init__(self, folder: Path, codebook: Codebook) -> None:
        self._file, self._index = folder / "index.faiss", FaissIndex(codebook)

    def add(self, ids: np.ndarray, codes: np.ndarray, descriptors: Tensor) -> None:  # noqa: ARG002
        """Codes are all it holds."""
        self._index.add(codes, ids)

    def save(self) -> None:
        """Write the file."""
        self._file.write_bytes(self._index.to_bytes())

    @classmethod
    def open(cls, folder: Path, codebook: Codebook) -> tuple[Search, Callable[[int | None], int]]:
        """Read the file into memory."""
        index = FaissIndex(codebook, (folder / "index.faiss").read_bytes())
        return lambda query, probes: index.search(query, 10, probes), lambda probes: probes or index.default_nprobe()


class Lance:
    """A dataset with an index in it, as collections in Lance have it: descriptors and codes are its rows."""

    def __init__(self, folder: Path, codebook: Codebook) -> None:
        self._uri, self._codebook = str(folder / "references.lance"), codebook

    def add(self, ids: np.ndarray, codes: np.ndarray, descriptors: Tensor) -> None:  # noqa: ARG002
        """Rows are numbered as they come."""
        rows = pa.table({CODE: to_list_column(codes), VECTOR: to_list_column(self._codebook.transform(descriptors))})
        mode = "append" if Path(self._uri).exists() else "create"
        load_lance().write_dataset(rows, self._uri, mode=mode, enable_stable_row_ids=True)

    def save(self) -> None:
        """Build the index, or bring it up to date."""
        refresh_index(load_lance().dataset(self._uri), self._codebook)

    @classmethod
    def open(cls, folder: Path, codebook: Codebook) -> tuple[Search, Callable[[int | None], int]]:
        """Of more than some hundred thousand references nothing is read before it is searched for."""
        index = LanceIndex(codebook, load_lance().dataset(str(folder / "references.lance")))
        return lambda query, probes: index.search(query, 10, probes), lambda probes: probes or index.default_nprobe()


ENGINES: dict[str, type[Engine]] = {"faiss": Faiss, "lance": Lance}
