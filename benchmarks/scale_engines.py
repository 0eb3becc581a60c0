"""Index engines for benchmarks/scale.py: each adds references in pieces, is saved, opened and searched.

To measure another engine, add a class with these methods and register it in ENGINES.
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

Search = Callable[[Tensor, int | None], object]  # (1, D) descriptors and a number of probes, or None for the default


class Engine(Protocol):
    """An index stored in its own folder."""

    def __init__(self, folder: Path, codebook: Codebook) -> None:
        """Create an empty index."""

    def add(self, ids: np.ndarray, codes: np.ndarray, descriptors: Tensor) -> None:
        """Add references, given as codes and as descriptors; an engine uses one or both."""

    def save(self) -> None:
        """Write the index to the folder, so that another process can open it."""

    @classmethod
    def open(cls, folder: Path, codebook: Codebook) -> tuple[Search, Callable[[int | None], int]]:
        """Return a search function, and a function from requested probes to the number of cells searched."""


class Faiss:
    """The FAISS index in memory, saved in one file like the snapshot of a collection."""

    def __init__(self, folder: Path, codebook: Codebook) -> None:
        self._file, self._index = folder / "index.faiss", FaissIndex(codebook)

    def add(self, ids: np.ndarray, codes: np.ndarray, descriptors: Tensor) -> None:  # noqa: ARG002
        """Add the codes; descriptors are not used."""
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
    """A Lance dataset of codes and descriptors with an index, as in a Lance collection."""

    def __init__(self, folder: Path, codebook: Codebook) -> None:
        self._uri, self._codebook = str(folder / "references.lance"), codebook

    def add(self, ids: np.ndarray, codes: np.ndarray, descriptors: Tensor) -> None:  # noqa: ARG002
        """Append rows; ids are assigned by Lance."""
        rows = pa.table({CODE: to_list_column(codes), VECTOR: to_list_column(self._codebook.transform(descriptors))})
        mode = "append" if Path(self._uri).exists() else "create"
        load_lance().write_dataset(rows, self._uri, mode=mode, enable_stable_row_ids=True)

    def save(self) -> None:
        """Build or update the index."""
        refresh_index(load_lance().dataset(self._uri), self._codebook)

    @classmethod
    def open(cls, folder: Path, codebook: Codebook) -> tuple[Search, Callable[[int | None], int]]:
        """Open the dataset; cells of large datasets are read on demand."""
        index = LanceIndex(codebook, load_lance().dataset(str(folder / "references.lance")))
        return lambda query, probes: index.search(query, 10, probes), lambda probes: probes or index.default_nprobe()


ENGINES: dict[str, type[Engine]] = {"faiss": Faiss, "lance": Lance}
