"""Storage by kind of data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from homing.estimate.rates import load_rates
from homing.estimate.request import CELLS, DIM, EstimateRequest
from homing.estimate.result import StorageItem

_HALF, _SINGLE, _ID = 2, 4, 8  # bytes per value of a stored descriptor, per value of a center, and per id
_CODE = 8  # code size in the measurements, in bytes
_WORDS = 256  # codewords per byte of a code


def storage(request: EstimateRequest) -> list[StorageItem]:
    """Data in buckets, on the collection's disk, and in the memory of each search machine."""
    photos = request.photos
    where: Literal["bucket", "disk"] = "bucket" if request.engine == "lance" else "disk"
    released = [StorageItem(name="released files", where="bucket", bytes=photos * request.file_bytes, basis="computed")]
    index, centers = photos * (_ID + request.code_bytes), _centers(request)
    searching = load_rates()["serve.memory"].number * 1e6
    items = [
        *(released if request.activates else []),
        *(
            StorageItem(name=name, where=where, bytes=photos * each, basis="measured")
            for name, each in _bytes_per_photo(request)
        ),
        StorageItem(name="snapshot of the index", where=where, bytes=index + centers, basis="computed"),
        StorageItem(name="process that searches", where="memory", bytes=searching, basis="measured"),
    ]
    if request.engine == "lance":  # it caches what it has read, as memory allows
        return [*items, StorageItem(name="centers of cells", where="memory", bytes=centers, basis="computed")]
    whole = index + centers + _tables(request)
    return [*items, StorageItem(name="index", where="memory", bytes=whole, basis="computed")]


def _bytes_per_photo(request: EstimateRequest) -> Iterable[tuple[str, float]]:
    """Bytes per photo in the catalog; the total is measured, except for other code sizes."""
    lance, kind = request.engine == "lance", "activated" if request.activates else "passive"
    rate = load_rates()[f"catalog.lance.{kind}" if lance else f"catalog.{kind}"]
    descriptors = DIM * ((_SINGLE if lance else _HALF) + (_HALF if request.activates else 0))
    rest = rate.number - descriptors - _CODE - _cell_bytes(CELLS)
    return {
        "catalog: descriptors": descriptors,
        "catalog: codes": request.code_bytes + _cell_bytes(request.cells),
        "catalog: hashes, names, releases" if request.activates else "catalog: hashes, names": rest,
    }.items()


def _cell_bytes(cells: int) -> int:
    """Bytes of the cell number in front of a code."""
    return ((cells - 1).bit_length() + 7) // 8


def _centers(request: EstimateRequest) -> float:
    """Bytes of the quantizer: cell centers and codewords."""
    return (request.cells + _WORDS) * DIM * _SINGLE


def _tables(request: EstimateRequest) -> float:
    """Bytes of the tables that FAISS precomputes from centers and codewords."""
    return request.cells * request.code_bytes * _WORDS * _SINGLE
