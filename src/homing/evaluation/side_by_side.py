"""For a person to judge: queries beside what a search found for them, laid over each other where possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw
from torch import Tensor

from homing._io.files import report_write_errors, write_atomically
from homing._io.paths import Location
from homing.collection import Match
from homing.collection.catalog import Catalog
from homing.collection.results import format_probability
from homing.errors import PhotoError
from homing.evaluation.alignment import align
from homing.evaluation.pictures import to_image
from homing.evaluation.results.page import embed, render
from homing.photo import Photo

_SIDE = 420  # pixels, at most: as large as pictures on a page are
_FRAME = (255, 64, 32)


@dataclass(frozen=True)
class _Pair:
    """A match in words and pictures; `remark` says what there is not, and why."""

    match: Match
    false_match_probability: str
    pictures: dict[str, str]
    note: str


@dataclass(frozen=True)
class Overlay:
    """A photo with a frame around what a query shows of it, that part in the shape of the query, and what differs."""

    framed: Image.Image
    overlay: Image.Image
    difference: Image.Image


def write_side_by_side(
    results: Sequence[tuple[Location, Sequence[Match]]],
    out: Path,
    catalog: Catalog,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """One HTML page of all queries with their matches; `advance` is called after each query."""
    rows = []
    for query, matches in results:
        picture = make_thumbnail(Photo.load(query).pixels())
        rows.append((str(query), embed(picture), [_pair(picture, match, catalog) for match in matches]))
        advance()
    with report_write_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, render("side_by_side.html", {"queries": rows}))


def _pair(query: Image.Image, match: Match, catalog: Catalog) -> _Pair:
    pictures: dict[str, Image.Image] = {}
    note = ""
    if match.state == "distractor":
        note = "a distractor, of which there is a code and no picture"
    else:
        try:
            photo = Photo.load(match.photo)
            if (match.id, photo.sha256) not in catalog.find_by_source(match.photo):
                raise PhotoError(f"{match.photo}: is another file by now than the one that was added")
            pictures, note = _match_pictures(query, make_thumbnail(photo.pixels()))
        except PhotoError as error:
            note = str(error)
    return _Pair(
        match,
        format_probability(match.false_match_probability),
        {name: embed(each) for name, each in pictures.items()},
        note,
    )


def _match_pictures(query: Image.Image, photo: Image.Image) -> tuple[dict[str, Image.Image], str]:
    """Pictures of a match by what they show; and what there is not, and why."""
    overlay = overlay_photo(query, photo)
    if overlay is None:
        return {"the match": photo}, "too little of the two agrees for them to be laid over each other"
    return {
        "the match, and where the query lies in it": overlay.framed,
        "the same part of it": overlay.overlay,
        "what differs": overlay.difference,
    }, ""


def overlay_photo(query: Image.Image, photo: Image.Image) -> Overlay | None:
    """A photo and what a query shows of it; nothing where too little of the two agrees."""
    alignment = align(query, photo)
    if alignment is None:
        return None
    framed = photo.copy()
    ImageDraw.Draw(framed).polygon(alignment.corners, outline=_FRAME, width=3)
    change = np.asarray(query, dtype=float) - np.asarray(alignment.image, dtype=float)
    # What lies beside the match is none of it, all of which differs: a caption put above the photo.
    change = np.where(alignment.mask[..., None], 127.5 + change, np.asarray(query))
    return Overlay(framed, alignment.image, Image.fromarray(change.round().clip(0, 255).astype(np.uint8)))


def make_thumbnail(pixels: Tensor) -> Image.Image:
    """A (3, H, W) view as it is shown beside others."""
    image = to_image(pixels)
    image.thumbnail((_SIDE, _SIDE))
    return image
