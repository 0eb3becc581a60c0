"""Why a reference is found, or is not: where it lies in its cell, what lies beside it, which edits it survives."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from homing._extras import load_extra
from homing._files import write_atomically, writing
from homing._places import place
from homing.codebooks import Codebook
from homing.collection import Collection, Match
from homing.collection.outcome import in_words
from homing.edits import PAPER
from homing.errors import CollectionError, PhotoError
from homing.evaluation.pictures import MAGNIFY, difference, to_image, to_view
from homing.evaluation.results.page import embed, render
from homing.extractors import describe
from homing.photo import Photo, read_file

NEIGHBOURS = 5


@dataclass(frozen=True, kw_only=True)
class Position:
    """Where a file of a photo lies: how far from the photo's code, and by how much within its cell.

    The margin is how much farther the centre of any other cell is than that of the photo's own, in squared distance:
    below 0 the file lies in another cell. None where a codebook has no cells to choose from. The hash is that of the
    file as it was recorded.
    """

    file: str
    sha256: str
    distance: float
    margin: float | None


@dataclass(frozen=True, kw_only=True)
class Survival:
    """Whether a copy, edited in one way, finds its photo first: with one probe, and by the default search.

    `before` is with one probe as well, for a copy of the original: None where only that was released, or is left. The
    chance is that of the photo in the default search, None where it was not first.
    """

    edit: str
    before: bool | None
    one_probe: bool
    default: bool
    chance: float | None


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """All there is to say of one reference; positions of the original and of what was released of it."""

    id: int
    photo: str
    state: str
    cell: int | None
    original: Position
    released: Position | None
    neighbours: list[Match]
    edits: list[Survival] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # files that are gone, are others by now, or cannot be read


def explain(collection: Collection, photo: str, *, edits: bool = True) -> Explanation:
    """Explain a reference: its id, or the path of it or of what was released of it.

    `edits` tries the fourteen edits of the paper on the released file; some are drawn by AugLy, an extra.
    """
    if edits:
        load_extra("augly.image", extra="bench")
    number = _find(collection, photo)
    catalogue, book = collection.folder.catalogue, collection.codebook
    source, state = catalogue.describe(number)
    kept, release = _kept(collection, number), catalogue.last_release(number)
    missing: list[str] = []
    (sha256,) = (sha256 for each, sha256 in catalogue.at(source) if each == number)
    before = _recorded(source, sha256, missing)
    after = _recorded(release.path, release.sha256, missing) if release else None
    moved = None
    if release and after:
        described = describe(collection.extractor, [after.view()])
        moved = _position(book, described, kept, release.path, release.sha256)
    out = after if release else before  # what others have copies of
    found = collection.search_descriptors(kept, k=NEIGHBOURS + 1, probes=1)[0]
    return Explanation(
        id=number,
        photo=source,
        state=state,
        cell=int(book.cells(kept)[0]) if book.has_cells else None,
        original=_position(book, kept, kept, source, sha256),
        released=moved,
        neighbours=[match for match in found if match.id != number][:NEIGHBOURS],
        edits=survivals(collection, number, out, before if release else None) if edits and out else [],
        missing=missing,
    )


def write_page(explanation: Explanation, out: Path) -> None:
    """The explanation as one HTML file with pictures of the photo, of those files that are there still."""
    views = {}
    for name, position in (("as it was", explanation.original), ("as released", explanation.released)):
        photo = position and _recorded(position.file, position.sha256, [])
        if photo:
            views[name] = photo.view()
    pictures = {name: to_image(view) for name, view in views.items()}
    if len(views) == 2:
        pictures[f"difference ×{MAGNIFY}"] = difference(*views.values())
    chances = ["" if each.chance is None else in_words(each.chance) for each in explanation.edits]
    values = {
        "it": explanation,
        "pictures": {name: embed(picture) for name, picture in pictures.items()},
        "edits": list(zip(explanation.edits, chances, strict=True)),
    }
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, render("explain.html", values))


def _find(collection: Collection, photo: str) -> int:
    catalogue, file, ids = collection.folder.catalogue, place(photo), []
    if file.is_file():
        sha256 = hashlib.sha256(read_file(file)).hexdigest()
        ids = [known for known in (catalogue.find(sha256) or catalogue.find_released(sha256),) if known]
    if not ids:  # a file that is gone, or is another by now, is known by its path
        ids = collection.find(int(photo) if photo.isdecimal() else photo).ids
    if len(ids) != 1:
        raise CollectionError(
            f"{photo} is {'not one' if ids else 'no'} reference of {collection.folder.home}, nor was it released of "
            "one; give the path or the id of a photo that was added"
        )
    return ids[0]


def _kept(collection: Collection, number: int) -> Tensor:
    """The descriptor (1, D) of the original."""
    try:
        vectors = collection.folder.catalogue.descriptors(np.array([number])).get(number)
    except ValueError:  # of NumPy: it is no whole number of values
        vectors = None
    if vectors is None or vectors.shape[1] != collection.codebook.dim:
        path = collection.folder.home
        raise CollectionError(f"reference {number} has lost its descriptor; mend it with: homing check {path} --repair")
    return torch.from_numpy(vectors[:1].astype(np.float32))


def _recorded(file: str, sha256: str, missing: list[str]) -> Photo | None:
    """The photo in a file, if that is the one that was recorded; else why not is added to what is missing."""
    try:
        photo = Photo.load(file)
    except PhotoError as error:
        missing.append(str(error))
        return None
    if photo.sha256 != sha256:
        missing.append(f"{file}: is another file by now than the one that was recorded")
        return None
    return photo


def _position(book: Codebook, descriptor: Tensor, original: Tensor, file: str, sha256: str) -> Position:
    distance = float(book.quantiser.apart(descriptor.numpy(), original.numpy())[0])
    return Position(file=file, sha256=sha256, distance=distance, margin=_margin(book, descriptor, original))


def _margin(book: Codebook, descriptor: Tensor, original: Tensor) -> float | None:
    ivf = book.quantiser.ivf
    if ivf is None or ivf.nlist < 2:
        return None
    turned, home = book.turn(descriptor), int(book.cells(original)[0])
    squared, cells = ivf.quantizer.search(turned, 2)
    other = squared[0, 1] if cells[0, 0] == home else squared[0, 0]
    return float(other - ((turned[0] - ivf.quantizer.reconstruct(home)) ** 2).sum())


def survivals(collection: Collection, number: int, out: Photo, original: Photo | None) -> list[Survival]:
    """What becomes of copies of the photo that is `out` in the world, by the edits of the paper.

    Beside those of the original, where that is another.
    """
    now = _copies(collection, out)
    first = [_first(collection, now, number)]
    if original is not None:
        first.append(_first(collection, _copies(collection, original), number))
    default = [next(iter(matches), None) for matches in collection.search_descriptors(now, k=1)]
    return [
        Survival(
            edit=edit.label,
            before=first[1][rank] if len(first) == 2 else None,
            one_probe=first[0][rank],
            default=match is not None and match.id == number,
            chance=match.chance if match is not None and match.id == number else None,
        )
        for rank, (edit, match) in enumerate(zip(PAPER, default, strict=True))
    ]


def _copies(collection: Collection, photo: Photo) -> Tensor:
    image = to_image(photo.view())
    return describe(collection.extractor, [collection.extractor.resize(to_view(edit(image, 0))) for edit in PAPER])


def _first(collection: Collection, copies: Tensor, number: int) -> list[bool]:
    found = collection.search_descriptors(copies, k=1, probes=1)
    return [bool(matches) and matches[0].id == number for matches in found]
