"""The Lance engine: codes on object storage, searched there with the cells and codewords of the codebook.

Lance gets all centroids and codewords, so it trains nothing, and its codes are those of FAISS. Rows that its index does
not cover yet, and all rows of a small dataset, are searched in memory by their codes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import faiss
import numpy as np
from torch import Tensor

from homing._imports import load_extra
from homing._io.parallel import prefetch_map
from homing.codebooks import Codebook
from homing.codebooks.codebook import as_arrays
from homing.errors import CodebookError
from homing.indexes.base import MAX_CODES_IN_MEMORY, default_nprobe, merge
from homing.indexes.faiss import FaissIndex

CODE, VECTOR = "code", "vector"
_NAME = "cells"  # name of the index in its dataset


def load_lance() -> ModuleType:
    """Import Lance, configured to choose cells as FAISS does."""
    # With many cells Lance would search for the nearest one approximately, and could probe another cell than the one
    # that the photo was activated for.
    os.environ["LANCE_USE_HNSW_SPEEDUP_INDEXING"] = "disabled"
    os.environ.setdefault("LANCE_LOG", "error")  # Lance warns about each empty cell
    return load_extra("lance", "lance")


def check_family(codebook: Codebook) -> None:
    """Refuse a codebook that Lance does not support; it supports IVF with 8-bit product codes."""
    codec, transforms = codebook.quantizer.codec, codebook.quantizer.transforms
    rotated = all(
        isinstance(each, faiss.LinearTransform) and each.is_orthonormal and each.d_in == each.d_out
        for each in transforms
    )
    if type(codec) is faiss.IndexIVFPQ and codec.by_residual and codec.pq.nbits == 8 and rotated:
        return
    raise CodebookError(
        f"'{codebook.spec}' is not supported by Lance, which has IVF with 8-bit product codes, rotated or not, "
        "such as IVF4096,PQ8x8 and OPQ8,IVF4096,PQ8x8; make a collection in a local folder"
    )


class LanceIndex:
    """One version of a dataset whose rows hold codes and transformed descriptors.

    An id is the stable row id plus one, so no id is 0.
    """

    def __init__(self, codebook: Codebook, dataset: Any, others: FaissIndex | None = None) -> None:
        """`others` holds further codes, such as distractors; rows are added to it that are searched in memory."""
        self._codebook, self._dataset = codebook, dataset
        self._rows = int(dataset.count_rows())
        self._in_memory = FaissIndex(codebook) if others is None else others
        self._count = self._rows + len(self._in_memory)
        in_memory = dataset.get_fragments() if self._rows <= MAX_CODES_IN_MEMORY else unindexed_fragments(dataset)
        if in_memory:
            rows = dataset.scanner(columns=["_rowid", CODE], fragments=in_memory).to_table()
            self._in_memory.add(codes_of(rows), ids_of(rows))

    def __len__(self) -> int:
        return self._count

    def search(
        self, descriptors: Tensor, k: int, probes: int | None = None, probe_radius: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest references of each of (B, D) or (B, T, D) descriptors: distances (B, k) and ids (B, k)."""
        k = min(k, max(len(self), 1))
        if probe_radius is None:
            probes = probes or self.default_nprobe()  # for all references, not for those in memory
        several = descriptors if descriptors.ndim == 3 else descriptors[:, None]
        found = [_padded(*self._in_memory.search(several, k, probes, probe_radius), k)]
        if len(self._in_memory) < len(self):
            found += self._in_dataset(several, k, probes, probe_radius)
        distances, ids = (np.stack(each, axis=1) for each in zip(*found, strict=True))
        return merge(distances, ids)

    def _in_dataset(
        self, several: Tensor, k: int, probes: int | None, probe_radius: float | None
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The nearest references in the dataset's index, for each of the T descriptors of the queries."""
        cells = self._in_memory.cells(several, probes, probe_radius)
        transformed = self._codebook.transform(several.flatten(0, -2))
        wanted = zip(transformed, (cells >= 0).sum(axis=1).tolist(), strict=True)
        nearest = list(prefetch_map(lambda each: self._nearest(*each, k), wanted))
        shape = (*several.shape[:2], k)
        distances, ids = (np.stack(each).reshape(shape) for each in zip(*nearest, strict=True))
        return [(distances[:, each], ids[:, each]) for each in range(shape[1])]

    def _nearest(self, query: np.ndarray, probes: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        rows = self._dataset.scanner(
            nearest={"column": VECTOR, "q": query, "k": k, "minimum_nprobes": probes, "maximum_nprobes": probes},
            columns=["_rowid", "_distance"],
            fast_search=True,  # rows outside the index are searched in memory
            disable_scoring_autoprojection=True,
        ).to_table()
        squared = rows["_distance"].to_numpy()
        return _padded(np.sqrt(np.maximum(squared, 0)), ids_of(rows), k)

    def default_nprobe(self) -> int:
        """The number of probes that stays fast for the size of the index."""
        return default_nprobe(self._codebook.quantizer.ivf.nlist, len(self))

    def sample_ids(self, count: int, *, below: int) -> np.ndarray:
        """Up to `count` ids below `below`, sampled with a fixed seed."""
        positions = np.random.default_rng(0).choice(self._rows, min(count, self._rows), replace=False)
        ids = ids_of(self._dataset.take(np.sort(positions).tolist(), columns=["_rowid"]))
        chosen: np.ndarray = ids[ids < below]
        return chosen


def refresh_index(dataset: Any, codebook: Codebook) -> None:
    """Update the index of a dataset; cells and codewords are unchanged."""
    if 2 * unindexed_rows(dataset) < dataset.count_rows():
        # Merge with the existing index, or Lance would train new cells.
        dataset.optimize.optimize_indices(index_names=[_NAME], num_indices_to_merge=1)
        return
    arrays, _ = as_arrays(codebook)
    with TemporaryDirectory() as folder:
        dataset.create_index(
            VECTOR,
            "IVF_PQ",
            name=_NAME,
            replace=True,
            metric="L2",
            num_partitions=len(arrays["centroids"]),
            num_sub_vectors=len(arrays["codewords"]),
            ivf_centroids=arrays["centroids"],
            pq_codebook=arrays["codewords"],
            **_precomputed_codes(dataset, codebook, folder),
        )


def _precomputed_codes(dataset: Any, codebook: Codebook, folder: str) -> dict[str, Any]:
    """Write codes to files for Lance, which would compute them many times more slowly."""
    arrow, size = load_extra("pyarrow", "lance"), codebook.quantizer.codec.code_size
    start = codebook.code_size - size
    fields = {"row_id": arrow.uint64(), "__ivf_part_id": arrow.uint32(), "__pq_code": arrow.list_(arrow.uint8(), size)}
    schema = arrow.schema(list(fields.items()))

    def pieces() -> Iterator[Any]:
        for piece in dataset.scanner(columns=["_rowid", CODE]).to_batches():
            codes = codes_of(piece)
            cells = np.zeros((len(codes), 4), dtype=np.uint8)
            cells[:, :start] = codes[:, :start]
            columns = [piece["_rowid"], arrow.array(cells.view("<u4")[:, 0]), to_list_column(codes[:, start:])]
            yield arrow.record_batch(columns, schema=schema)

    reader = arrow.RecordBatchReader.from_batches(schema, pieces())
    # The format that `create_index` reads.
    dataset_of_codes = load_lance().write_dataset(reader, folder, mode="overwrite", data_storage_version="legacy")
    files = [file.path for fragment in dataset_of_codes.get_fragments() for file in fragment.data_files()]
    return {"precomputed_shuffle_buffers": files, "precomputed_shuffle_buffers_path": f"{folder}/data"}


def unindexed_fragments(dataset: Any) -> list[Any]:
    """The fragments of a dataset that its index does not cover."""
    inside: set[int] = set()
    for each in dataset.describe_indices():
        if each.name == _NAME:
            inside = {number for segment in each.segments for number in segment.fragment_ids}
    return [each for each in dataset.get_fragments() if each.fragment_id not in inside]


def unindexed_rows(dataset: Any) -> int:
    """The number of rows that the index of a dataset does not cover."""
    return sum(each.count_rows() for each in unindexed_fragments(dataset))


def is_outdated(dataset: Any) -> bool:
    """Whether the index of a dataset lacks rows or covers removed ones."""
    removed = any(each.num_deletions for each in dataset.get_fragments())
    return removed or bool(unindexed_fragments(dataset))


def cells_differ(dataset: Any, codebook: Codebook) -> bool:
    """Whether a dataset has an index with other cells than the codebook's."""
    if not any(each.name == _NAME for each in dataset.describe_indices()):
        return False
    centroids, indexed = as_arrays(codebook)[0]["centroids"], dataset.get_ivf_model(_NAME).centroids
    return not np.array_equal(indexed.flatten().to_numpy().reshape(len(indexed), -1), centroids)


def drop_index(dataset: Any) -> None:
    """Remove the index of a dataset; its codes are searched in memory until it has a new one."""
    dataset.drop_index(_NAME)


def ids_of(rows: Any) -> np.ndarray:
    """The ids (N,) of a table of rows."""
    ids: np.ndarray = rows["_rowid"].to_numpy().astype(np.int64) + 1
    return ids


def codes_of(rows: Any) -> np.ndarray:
    """The codes (N, bytes) of a table of rows."""
    return to_matrix(rows[CODE])


def to_matrix(column: Any) -> np.ndarray:
    """A column of lists of one length as an array (N, length)."""
    whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    flat: np.ndarray = whole.flatten().to_numpy()
    return flat.reshape(len(column), -1)


def to_list_column(rows: np.ndarray) -> Any:
    """An array (N, length) as a column of lists."""
    arrow = load_extra("pyarrow", "lance")
    return arrow.FixedSizeListArray.from_arrays(arrow.array(np.ascontiguousarray(rows).reshape(-1)), rows.shape[1])


def _padded(distances: np.ndarray, ids: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Results padded to k columns, with infinite distances and id -1."""
    missing = [(0, 0)] * (ids.ndim - 1) + [(0, k - ids.shape[-1])]
    return np.pad(distances, missing, constant_values=np.inf), np.pad(ids, missing, constant_values=-1)
