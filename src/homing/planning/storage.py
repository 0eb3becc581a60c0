"""What is kept of the photos, part by part."""

from __future__ import annotations

from homing.planning.answer import Part
from homing.planning.question import DIM, Question
from homing.planning.rates import measured

_HALF, _SINGLE, _ID = 2, 4, 8  # bytes of a number of a descriptor as it is kept, of a centre, and of an id
_CODE = 8  # bytes of the code of a reference that was measured
_WORDS = 256  # codewords of each byte of a code


def storage(question: Question) -> list[Part]:
    """What lies in the bucket, on the disk of the collection, and in the memory of each machine that searches."""
    kept, photos = _of_one(question), question.photos
    released = [Part(name="released files", where="bucket", bytes=photos * question.file_bytes, basis="arithmetic")]
    index = photos * (_ID + question.code_bytes)
    return [
        *(released if question.activates else []),
        *(Part(name=name, where="disk", bytes=photos * each, basis="measured") for name, each in kept.items()),
        Part(name="snapshot of the index", where="disk", bytes=index + _centres(question), basis="arithmetic"),
        Part(
            name="process that searches",
            where="memory",
            bytes=measured()["serve.memory"].number * 1e6,
            basis="measured",
        ),
        Part(name="index", where="memory", bytes=index + _centres(question) + _tables(question), basis="arithmetic"),
    ]


def _of_one(question: Question) -> dict[str, float]:
    """Bytes that the catalogue holds of one photo: together as many as were measured, but for longer codes."""
    rate = measured()["catalogue.activated" if question.activates else "catalogue.passive"]
    descriptors = DIM * _HALF * (2 if question.activates else 1)
    cell = _cell_bytes(4096)
    rest = rate.number - descriptors - _CODE - cell
    return {
        "catalogue: descriptors": descriptors,
        "catalogue: codes": question.code_bytes + _cell_bytes(question.cells),
        "catalogue: hashes, names, releases" if question.activates else "catalogue: hashes, names": rest,
    }


def _cell_bytes(cells: int) -> int:
    """Bytes that the number of a cell takes at the beginning of a code."""
    return ((cells - 1).bit_length() + 7) // 8


def _centres(question: Question) -> float:
    """What the quantiser itself takes: the centres of cells, and the codewords."""
    return (question.cells + _WORDS) * DIM * _SINGLE


def _tables(question: Question) -> float:
    """What FAISS computes once of centres and codewords, so that searches need not."""
    return question.cells * question.code_bytes * _WORDS * _SINGLE
