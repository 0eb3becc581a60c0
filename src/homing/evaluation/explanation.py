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
    below 0 the file lies in another cell. None where a codebook has no cells to choose from.
    """

    file: str
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
    missing: list[str] = field(default_factory=list)  # files that could not be read, and why


def explain(collection: Collection, photo: str, *, edits: bool = True) -> Explanation:
    """Explain a reference: its id, or the path of it or of what was released of it.

    `edits` tries the fourteen edits of the paper on the released file; some are drawn by AugLy, an extra.
    """
    if edits:
        load_extra("augly.image", extra="bench")
    number = _find(collection, photo)
    catalogue, book = collection.folder.catalogue, collection.codebook
    source, state = catalogue.describe(number)
    kept = _kept(collection, number)
    release = catalogue.last_release(number)
    missing: list[str] = []
    after = _described(collection, release.path, missing) if release else None
    found = collection.search_descriptors(kept, k=NEIGHBOURS + 1, probes=1)[0]
    return Explanation(
        id=number,
        photo=source,
        state=state,
        cell=int(book.cells(kept)[0]) if book.has_cells else None,
        original=_position(book, kept, kept, source),
        released=_position(book, after, kept, release.path) if release and after is not None else None,
        neighbours=[match for match in found if match.id != number][:NEIGHBOURS],
        edits=_survivals(collection, number, source, release.path if release else None, missing) if edits else [],
        missing=missing,
    )


def write_page(explanation: Explanation, out: Path) -> None:
    """The explanation as one HTML file with pictures of the photo, of those that can be read."""
    views = {}
    for name, position in (("as it was", explanation.original), ("as released", explanation.released)):
        if position is not None and place(position.file).is_file():
            views[name] = Photo.load(position.file).view()
    pictures = {name: to_image(view) for name, view in views.items()}
    if len(views) == 2:
        pictures[f"difference ×{MAGNIFY}"] = difference(*views.values())
    shown = {name: embed(picture) for name, picture in pictures.items()}
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, render("explain.html", {"it": explanation, "pictures": shown}))


def _find(collection: Collection, photo: str) -> int:
    catalogue, file = collection.folder.catalogue, place(photo)
    if file.is_file():
        sha256 = hashlib.sha256(read_file(file)).hexdigest()
        known = catalogue.find(sha256) or catalogue.find_released(sha256)
        ids = [] if known is None else [known]
    else:
        ids = collection.find(int(photo) if photo.isdecimal() else file).ids
    if len(ids) != 1:
        raise CollectionError(
            f"{photo} is {'not one' if ids else 'no'} reference of {collection.folder.home}, nor was it released of "
            "one; give the path or the id of a photo that was added"
        )
    return ids[0]


def _kept(collection: Collection, number: int) -> Tensor:
    """The descriptor (1, D) of the original."""
    vectors = collection.folder.catalogue.descriptors(np.array([number])).get(number)
    if vectors is None:
        path = collection.folder.home
        raise CollectionError(f"reference {number} has lost its descriptor; mend it with: homing check {path} --repair")
    return torch.from_numpy(vectors[:1].astype(np.float32))


def _described(collection: Collection, file: str, missing: list[str]) -> Tensor | None:
    try:
        return describe(collection.extractor, [Photo.load(file).view()])
    except PhotoError as error:
        missing.append(str(error))
        return None


def _position(book: Codebook, descriptor: Tensor, original: Tensor, file: str) -> Position:
    distance = float(book.quantiser.apart(descriptor.numpy(), original.numpy())[0])
    return Position(file=file, distance=distance, margin=_margin(book, descriptor, original))


def _margin(book: Codebook, descriptor: Tensor, original: Tensor) -> float | None:
    ivf = book.quantiser.ivf
    if ivf is None or ivf.nlist < 2:
        return None
    turned, home = book.turn(descriptor), int(book.cells(original)[0])
    squared, cells = ivf.quantizer.search(turned, 2)
    other = squared[0, 1] if cells[0, 0] == home else squared[0, 0]
    return float(other - ((turned[0] - ivf.quantizer.reconstruct(home)) ** 2).sum())


def _survivals(
    collection: Collection, number: int, source: str, released: str | None, missing: list[str]
) -> list[Survival]:
    """What becomes of the copies of the file that is out in the world, beside those of the original."""
    now = _copies(collection, released or source, missing)
    if now is None:
        return []
    before = _copies(collection, source, missing) if released else None
    first = [_first(collection, some, number) for some in (now, before) if some is not None]
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


def _copies(collection: Collection, file: str, missing: list[str]) -> Tensor | None:
    try:
        image = to_image(Photo.load(file).view())
    except PhotoError as error:
        if str(error) not in missing:
            missing.append(str(error))
        return None
    squares = (collection.extractor.resize(to_view(edit(image, 0))) for edit in PAPER)
    return describe(collection.extractor, list(squares))


def _first(collection: Collection, copies: Tensor, number: int) -> list[bool]:
    found = collection.search_descriptors(copies, k=1, probes=1)
    return [bool(matches) and matches[0].id == number for matches in found]
