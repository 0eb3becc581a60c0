"""What is kept of the photos, part by part."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from homing.estimate.rates import load_rates
from homing.estimate.request import CELLS, DIM, EstimateRequest
from homing.estimate.result import StorageItem

_HALF, _SINGLE, _ID = 2, 4, 8  # bytes of a number of a descriptor as it is kept, of a center, and of an id
_CODE = 8  # bytes of the code of a reference that was measured
_WORDS = 256  # codewords of each byte of a code


def storage(request: EstimateRequest) -> list[StorageItem]:
    """What lies in the bucket, on the disk of the collection, and in the memory of each machine that searches."""
    photos = request.photos
    where: Literal["bucket", "disk"] = "bucket" if request.engine == "lance" else "disk"
    released = [StorageItem(name="released files", where="bucket", bytes=photos * request.file_bytes, basis="computed")]
    index, centers = photos * (_ID + request.code_bytes), _centers(request)
    searching = load_rates()["serve.memory"].number * 1e6
    kept = [
        *(released if request.activates else []),
        *(
            StorageItem(name=name, where=where, bytes=photos * each, basis="measured")
            for name, each in _bytes_per_photo(request)
        ),
        StorageItem(name="snapshot of the index", where=where, bytes=index + centers, basis="computed"),
        StorageItem(name="process that searches", where="memory", bytes=searching, basis="measured"),
    ]
    if request.engine == "lance":  # which keeps in memory what it has read, as far as there is room
        return [*kept, StorageItem(name="centers of cells", where="memory", bytes=centers, basis="computed")]
    whole = index + centers + _tables(request)
    return [*kept, StorageItem(name="index", where="memory", bytes=whole, basis="computed")]


def _bytes_per_photo(request: EstimateRequest) -> Iterable[tuple[str, float]]:
    """Bytes that the catalog holds of one photo: together as many as were measured, but for longer codes."""
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
    """Bytes that the number of a cell takes at the beginning of a code."""
    return ((cells - 1).bit_length() + 7) // 8


def _centers(request: EstimateRequest) -> float:
    """What the quantizer itself takes: the centers of cells, and the codewords."""
    return (request.cells + _WORDS) * DIM * _SINGLE


def _tables(request: EstimateRequest) -> float:
    """What FAISS computes once of centers and codewords, so that searches need not."""
    return request.cells * request.code_bytes * _WORDS * _SINGLE
