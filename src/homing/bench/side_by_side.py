"""A page of queries next to their matches, aligned where possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from homing._io.files import report_write_errors, write_atomically
from homing._io.paths import Location
from homing.alignment import overlay_photo
from homing.bench.results.page import render
from homing.collection import Match, SearchResult
from homing.collection.results import format_probability
from homing.collection.storage import Storage
from homing.errors import PhotoError
from homing.imaging import embed, make_thumbnail
from homing.photo import Photo

_VERDICTS = {"match": "match", "possible": "possible match", "none": "no match"}


@dataclass(frozen=True)
class _Pair:
    """A match with its pictures; `note` explains missing pictures."""

    match: Match
    false_match_probability: str
    pictures: dict[str, str]
    note: str


def write_side_by_side(
    results: Sequence[tuple[Location, SearchResult]],
    out: Path,
    catalog: Storage,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Write an HTML page of all queries with their matches; `advance` is called after each query."""
    rows = []
    for query, result in results:
        picture = make_thumbnail(Photo.load(query).pixels())
        # What is no match is shown only if there is nothing better.
        likely = [match for match in result if match.verdict != "none"] or result.matches[:1]
        pairs = [_pair(picture, match, catalog) for match in likely]
        rows.append((str(query), _VERDICTS[result.verdict], embed(picture), pairs))
        advance()
    with report_write_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, render("side_by_side.html", {"queries": rows}))


def _pair(query: Image.Image, match: Match, catalog: Storage) -> _Pair:
    pictures: dict[str, Image.Image] = {}
    note = ""
    if match.state == "distractor":
        note = "A distractor: the collection has its code, but no picture."
    else:
        try:
            photo = Photo.load(match.photo)
            if (match.id, photo.sha256) not in catalog.find_by_source(match.photo):
                raise PhotoError(f"{match.photo}: has changed since it was added")
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
    """Pictures of a match by caption, and a note if the alignment failed."""
    overlay = overlay_photo(query, photo)
    if overlay is None:
        return {"reference": photo}, "Too few common features to align the two photos."
    return {
        "reference, with the frame of the query": overlay.framed,
        "reference, aligned with the query": overlay.overlay,
        "difference": overlay.difference,
    }, ""
