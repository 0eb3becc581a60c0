"""For a person to judge: queries beside what a search found for them, laid over each other where possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw
from torch import Tensor

from homing._files import write_atomically, writing
from homing._places import Place
from homing.collection import Match
from homing.collection.catalogue import Catalogue
from homing.collection.outcome import in_words
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
    chance: str
    pictures: dict[str, str]
    remark: str


@dataclass(frozen=True)
class LaidOver:
    """A photo with a frame around what a query shows of it, that part in the shape of the query, and what differs."""

    framed: Image.Image
    overlay: Image.Image
    difference: Image.Image


def write_side_by_side(
    answers: Sequence[tuple[Place, Sequence[Match]]],
    out: Path,
    catalogue: Catalogue,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """One HTML page of all queries with their matches; `advance` is called after each query."""
    shown = []
    for query, matches in answers:
        picture = small_picture(Photo.load(query).view())
        shown.append((str(query), embed(picture), [_pair(picture, match, catalogue) for match in matches]))
        advance()
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, render("side_by_side.html", {"queries": shown}))


def _pair(query: Image.Image, match: Match, catalogue: Catalogue) -> _Pair:
    pictures: dict[str, Image.Image] = {}
    remark = ""
    if match.state == "background":
        remark = "a stranger of the background, of which there is a code and no picture"
    else:
        try:
            photo = Photo.load(match.photo)
            if (match.id, photo.sha256) not in catalogue.at(match.photo):
                raise PhotoError(f"{match.photo}: is another file by now than the one that was added")
            pictures, remark = _shown(query, small_picture(photo.view()))
        except PhotoError as error:
            remark = str(error)
    return _Pair(match, in_words(match.chance), {name: embed(each) for name, each in pictures.items()}, remark)


def _shown(query: Image.Image, photo: Image.Image) -> tuple[dict[str, Image.Image], str]:
    """Pictures of a match by what they show; and what there is not, and why."""
    laid = laid_over(query, photo)
    if laid is None:
        return {"the match": photo}, "too little of the two agrees for them to be laid over each other"
    return {
        "the match, and where the query lies in it": laid.framed,
        "the same part of it": laid.overlay,
        "what differs": laid.difference,
    }, ""


def laid_over(query: Image.Image, photo: Image.Image) -> LaidOver | None:
    """A photo and what a query shows of it; nothing where too little of the two agrees."""
    laid = align(query, photo)
    if laid is None:
        return None
    framed = photo.copy()
    ImageDraw.Draw(framed).polygon(laid.frame, outline=_FRAME, width=3)
    apart = np.asarray(query, dtype=float) - np.asarray(laid.picture, dtype=float)
    # What lies beside the match is none of it, all of which differs: a caption put above the photo.
    apart = np.where(laid.inside[..., None], 127.5 + apart, np.asarray(query))
    return LaidOver(framed, laid.picture, Image.fromarray(apart.round().clip(0, 255).astype(np.uint8)))


def small_picture(view: Tensor) -> Image.Image:
    """A (3, H, W) view as it is shown beside others."""
    image = to_image(view)
    image.thumbnail((_SIDE, _SIDE))
    return image
