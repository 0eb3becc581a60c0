"""What is kept of the photos, part by part."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from homing.planning.answer import Part
from homing.planning.question import CELLS, DIM, Question
from homing.planning.rates import measured

_HALF, _SINGLE, _ID = 2, 4, 8  # bytes of a number of a descriptor as it is kept, of a centre, and of an id
_CODE = 8  # bytes of the code of a reference that was measured
_WORDS = 256  # codewords of each byte of a code


def storage(question: Question) -> list[Part]:
    """What lies in the bucket, on the disk of the collection, and in the memory of each machine that searches."""
    photos = question.photos
    where: Literal["bucket", "disk"] = "bucket" if question.engine == "lance" else "disk"
    released = [Part(name="released files", where="bucket", bytes=photos * question.file_bytes, basis="arithmetic")]
    index, centres = photos * (_ID + question.code_bytes), _centres(question)
    searching = measured()["serve.memory"].number * 1e6
    kept = [
        *(released if question.activates else []),
        *(Part(name=name, where=where, bytes=photos * each, basis="measured") for name, each in _of_one(question)),
        Part(name="snapshot of the index", where=where, bytes=index + centres, basis="arithmetic"),
        Part(name="process that searches", where="memory", bytes=searching, basis="measured"),
    ]
    if question.engine == "lance":  # which keeps in memory what it has read, as far as there is room
        return [*kept, Part(name="centres of cells", where="memory", bytes=centres, basis="arithmetic")]
    whole = index + centres + _tables(question)
    return [*kept, Part(name="index", where="memory", bytes=whole, basis="arithmetic")]


def _of_one(question: Question) -> Iterable[tuple[str, float]]:
    """Bytes that the catalogue holds of one photo: together as many as were measured, but for longer codes."""
    lance, kind = question.engine == "lance", "activated" if question.activates else "passive"
    rate = measured()[f"catalogue.lance.{kind}" if lance else f"catalogue.{kind}"]
    descriptors = DIM * ((_SINGLE if lance else _HALF) + (_HALF if question.activates else 0))
    rest = rate.number - descriptors - _CODE - _cell_bytes(CELLS)
    return {
        "catalogue: descriptors": descriptors,
        "catalogue: codes": question.code_bytes + _cell_bytes(question.cells),
        "catalogue: hashes, names, releases" if question.activates else "catalogue: hashes, names": rest,
    }.items()


def _cell_bytes(cells: int) -> int:
    """Bytes that the number of a cell takes at the beginning of a code."""
    return ((cells - 1).bit_length() + 7) // 8


def _centres(question: Question) -> float:
    """What the quantiser itself takes: the centres of cells, and the codewords."""
    return (question.cells + _WORDS) * DIM * _SINGLE


def _tables(question: Question) -> float:
    """What FAISS computes once of centres and codewords, so that searches need not."""
    return question.cells * question.code_bytes * _WORDS * _SINGLE
