"""For a person to judge: queries beside what a search found for them, laid over each other where possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from homing._io.files import report_write_errors, write_atomically
from homing._io.paths import Location
from homing.alignment import overlay_photo
from homing.collection import Match
from homing.collection.catalog import Catalog
from homing.collection.results import format_probability
from homing.errors import PhotoError
from homing.evaluation.results.page import render
from homing.imaging import embed, make_thumbnail
from homing.photo import Photo


@dataclass(frozen=True)
class _Pair:
    """A match in words and pictures; `remark` says what there is not, and why."""

    match: Match
    false_match_probability: str
    pictures: dict[str, str]
    note: str


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
