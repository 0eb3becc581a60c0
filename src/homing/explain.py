"""Why a reference is found or not: its distance to the code, its cell, its neighbors, and the edits it survives."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from homing.codebooks import Codebook
from homing.collection import Collection, Match
from homing.edits import PAPER
from homing.errors import CollectionError, PhotoError
from homing.extractors import describe_images
from homing.imaging import to_image, to_pixels
from homing.photo import MemoryPhoto, Photo, PhotoLike, as_photo, read_file

__all__ = ["EditResult", "Explanation", "Position", "explain"]


def __dir__() -> list[str]:
    return sorted(__all__)


NEIGHBORS = 5


@dataclass(frozen=True, kw_only=True)
class Position:
    """The position of a file in the index: its distance to the photo's code, and its margin to the next cell.

    The margin is the squared distance to the nearest other cell center minus that to the photo's own: below 0 the file
    falls into another cell. None if the codebook has fewer than two cells. `sha256` is that of the recorded file.
    """

    file: str
    sha256: str
    distance: float
    margin: float | None


@dataclass(frozen=True, kw_only=True)
class EditResult:
    """Whether the photo is the nearest match of a copy with one edit: with one probe, and with the default search.

    `before` is the result with one probe for a copy of the original; None if the original was released or is missing.
    `false_match_probability` is that of the photo in the default search; None if it is not the nearest.
    """

    edit: str
    before: bool | None
    one_probe: bool
    default: bool
    false_match_probability: float | None


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The explanation of one reference, with positions of the original and of the released file."""

    id: int
    photo: str
    state: str
    cell: int | None
    original: Position
    released: Position | None
    neighbors: list[Match]
    edits: list[EditResult] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # errors of files that are missing, changed or unreadable


def explain(collection: Collection, photo: PhotoLike | int, *, edits: bool = True) -> Explanation:
    """Explain a reference, given by its id, its path, or the photo itself, as added or as released.

    `edits` tries the fourteen edits of the paper on the released file.
    """
    number = _find_id(collection, photo)
    storage, book = collection.storage, collection.codebook
    source, state = storage.source_and_state(number)
    stored, release = _stored_descriptor(collection, number), storage.last_release(number)
    missing: list[str] = []
    (sha256,) = (sha256 for each, sha256 in storage.find_by_source(source) if each == number)
    before = load_recorded(source, sha256, missing)
    after = load_recorded(release.path, release.sha256, missing) if release else None
    released_position = None
    if release and after:
        described = describe_images(collection.extractor, [after.pixels()])
        released_position = _position(book, described, stored, release.path, release.sha256)
    out = after if release else before  # the file that was published
    found = collection.search_descriptors(stored, k=NEIGHBORS + 1, probes=1)[0]
    return Explanation(
        id=number,
        photo=source,
        state=state,
        cell=int(book.cells(stored)[0]) if book.has_cells else None,
        original=_position(book, stored, stored, source, sha256),
        released=released_position,
        neighbors=[match for match in found if match.id != number][:NEIGHBORS],
        edits=edit_results(collection, number, out, before if release else None) if edits and out else [],
        missing=missing,
    )


def _find_id(collection: Collection, photo: PhotoLike | int) -> int:
    storage = collection.storage
    given = photo if isinstance(photo, int) else as_photo(photo)
    ids, sha256 = [], None
    if isinstance(given, MemoryPhoto):
        sha256 = given.sha256
    elif not isinstance(given, int) and given.is_file():
        sha256 = hashlib.sha256(read_file(given)).hexdigest()
    if sha256 is not None:
        ids = [known for known in (storage.find(sha256) or storage.find_released(sha256),) if known]
    if not ids and not isinstance(given, MemoryPhoto):  # an id, or a missing or changed file: look up its path
        ids = collection.select(given).ids
    if len(ids) != 1:
        raise CollectionError(
            f"{given} is {'more than one reference' if ids else 'neither a reference nor a released file'} of "
            f"{collection.root}; give the path or the id of a photo that was added"
        )
    return ids[0]


def _stored_descriptor(collection: Collection, number: int) -> Tensor:
    """The descriptor (1, D) of the original."""
    try:
        vectors = collection.storage.descriptors(np.array([number])).get(number)
    except ValueError:  # NumPy: not a whole number of values
        vectors = None
    if vectors is None or vectors.shape[1] != collection.codebook.dim:
        path = collection.root
        raise CollectionError(
            f"reference {number} has lost its descriptor; repair it with: homing check {path} --repair"
        )
    return torch.from_numpy(vectors[:1].astype(np.float32))


def load_recorded(file: str, sha256: str, missing: list[str]) -> Photo | None:
    """The photo in a file if it is the recorded one; otherwise None, and the reason is appended to `missing`."""
    try:
        photo = Photo.load(file)
    except PhotoError as error:
        missing.append(str(error))
        return None
    if photo.sha256 != sha256:
        missing.append(f"{file}: has changed since it was recorded")
        return None
    return photo


def _position(book: Codebook, descriptor: Tensor, original: Tensor, file: str, sha256: str) -> Position:
    distance = float(book.quantizer.distances(descriptor.numpy(), original.numpy())[0])
    return Position(file=file, sha256=sha256, distance=distance, margin=_margin(book, descriptor, original))


def _margin(book: Codebook, descriptor: Tensor, original: Tensor) -> float | None:
    ivf = book.quantizer.ivf
    if ivf is None or ivf.nlist < 2:
        return None
    transformed, own_cell = book.transform(descriptor), int(book.cells(original)[0])
    squared, cells = ivf.quantizer.search(transformed, 2)
    other = squared[0, 1] if cells[0, 0] == own_cell else squared[0, 0]
    return float(other - ((transformed[0] - ivf.quantizer.reconstruct(own_cell)) ** 2).sum())


def edit_results(collection: Collection, number: int, out: Photo, original: Photo | None) -> list[EditResult]:
    """Results for copies of the released photo `out` with the edits of the paper.

    With results for copies of the `original`, if it is another file.
    """
    now = _copies(collection, out)
    first = [_found_first(collection, now, number)]
    if original is not None:
        first.append(_found_first(collection, _copies(collection, original), number))
    default = [next(iter(matches), None) for matches in collection.search_descriptors(now, k=1)]
    return [
        EditResult(
            edit=edit.label,
            before=first[1][rank] if len(first) == 2 else None,
            one_probe=first[0][rank],
            default=match is not None and match.id == number,
            false_match_probability=match.false_match_probability if match is not None and match.id == number else None,
        )
        for rank, (edit, match) in enumerate(zip(PAPER, default, strict=True))
    ]


def _copies(collection: Collection, photo: Photo) -> Tensor:
    image = to_image(photo.pixels())
    return describe_images(
        collection.extractor, [collection.extractor.resize(to_pixels(edit(image, 0))) for edit in PAPER]
    )


def _found_first(collection: Collection, copies: Tensor, number: int) -> list[bool]:
    found = collection.search_descriptors(copies, k=1, probes=1)
    return [bool(matches) and matches[0].id == number for matches in found]
