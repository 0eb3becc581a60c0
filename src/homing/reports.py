"""Reports of commands: of an activation job (HTML or CSV), of a search, and of an explanation (HTML)."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from homing._io.files import format_size, prepare_output_file, report_write_errors, write_atomically
from homing._io.paths import Location
from homing.collection import Match, Outcome, SearchResult
from homing.collection.search import VERDICT_TEXTS, format_probability
from homing.collection.sources import display_name
from homing.collection.storage import Storage
from homing.errors import HomingError, PhotoError, ran_out_of_memory
from homing.explain import Explanation, load_recorded
from homing.imaging import (
    MAGNIFY,
    data_url,
    difference,
    embed,
    encode_jpeg,
    make_thumbnail,
    overlay_photo,
    render_page,
    to_image,
)
from homing.photo import Photo

MAX_PICTURES = 500
"""Photos with pictures on the page of a job. In a larger job only photos with remarks have pictures."""
AMPLIFY = 40
_SIDE = 160  # pixels
_MAX_BYTES = 2400  # of a picture: three of them, as base64, are less than 10 KB
_QUALITIES = (85, 75, 65, 55, 45, 35, 25, 15)
_COLUMNS = (
    "photo",
    "released",
    "state",
    "psnr",
    "ssim",
    "linf",
    "bytes_before",
    "bytes_after",
    "reason",
    "notes",
    "overwrote",
    "resumed",
)


def prepare_report(path: Path) -> None:
    """Check the name and the folder of a report before the job."""
    if path.suffix.lower() not in (".html", ".csv"):
        raise HomingError(f"--report takes FILE.html or FILE.csv, got {path}")
    prepare_output_file(path, path.suffix.lower())


def write_report(outcomes: Sequence[Outcome], path: Path, advance: Callable[[], None] = lambda: None) -> None:
    """Write the report of a job as HTML or CSV, as the name ends, ordered by path.

    `advance` is called once per photo.
    """
    ordered = sorted(outcomes, key=lambda outcome: outcome.photo)
    _write(path, _csv(ordered, advance) if path.suffix.lower() == ".csv" else _page(ordered, advance))


def write_side_by_side(
    results: Sequence[tuple[Location, SearchResult]],
    out: Path,
    storage: Storage,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Write an HTML page of all queries next to their matches, aligned where possible.

    `advance` is called after each query.
    """
    rows = []
    for query, result in results:
        picture = make_thumbnail(Photo.load(query).pixels())
        # What is no match is shown only if there is nothing better.
        likely = [match for match in result if match.verdict != "none"] or result.matches[:1]
        pairs = [_pair(picture, match, storage) for match in likely]
        rows.append((str(query), VERDICT_TEXTS[result.verdict], embed(picture), pairs))
        advance()
    _write(out, render_page("side_by_side.html", {"queries": rows}))


def write_explanation(explanation: Explanation, out: Path) -> None:
    """Write an explanation as one HTML file, with pictures of the files that still exist."""
    images = {}
    for name, position in (("original", explanation.original), ("released", explanation.released)):
        photo = position and load_recorded(position.file, position.sha256, [])
        if photo:
            images[name] = photo.pixels()
    pictures = {name: to_image(pixels) for name, pixels in images.items()}
    if len(images) == 2:
        pictures[f"difference ×{MAGNIFY}"] = difference(*images.values())
    probabilities = [
        "" if each.false_match_probability is None else format_probability(each.false_match_probability)
        for each in explanation.edits
    ]
    values = {
        "explanation": explanation,
        "pictures": {name: embed(picture) for name, picture in pictures.items()},
        "edits": list(zip(explanation.edits, probabilities, strict=True)),
    }
    _write(out, render_page("explain.html", values))


def _write(path: Path, data: bytes) -> None:
    with report_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)


def remarks(outcome: Outcome) -> list[str]:
    """What is worth telling about one photo: why it was not activated, and what was written differently."""
    return [*([] if outcome.reason is None else [outcome.reason]), *outcome.remarks]


def _csv(outcomes: Sequence[Outcome], advance: Callable[[], None]) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(_COLUMNS)
    for outcome in outcomes:
        values = vars(outcome) | {"notes": " ".join(outcome.notes)}
        writer.writerow("" if values[name] in (None, math.inf) else values[name] for name in _COLUMNS)
        advance()
    return file.getvalue().encode(errors="replace")


def _page(outcomes: Sequence[Outcome], advance: Callable[[], None]) -> bytes:
    entries = []
    few, pictured = len(outcomes) <= MAX_PICTURES, 0
    for outcome in outcomes:
        reported = remarks(outcome)
        pictures: dict[str, str] = {}
        if outcome.released is not None and (few or reported) and pictured < MAX_PICTURES:
            pictured += 1
            try:
                pictures = _pictures(outcome)
            except PhotoError as error:
                reported.append(f"No pictures: {error}")
            except (MemoryError, RuntimeError) as error:
                if not ran_out_of_memory(error):
                    raise
                reported.append("No pictures: too large for the available memory")
        entries.append({"outcome": outcome, "remarks": reported, "pictures": pictures})
        advance()
    released = [outcome for outcome in outcomes if outcome.bytes_before is not None and outcome.bytes_after is not None]
    values = {
        "sections": _sections(entries),
        "photos": len(entries),
        "pictured": pictured,
        "counts": {
            state: sum(outcome.state == state for outcome in outcomes) for state in ("activated", "unchanged", "failed")
        },
        "means": _means([outcome for outcome in outcomes if outcome.state == "activated"]),
        "before": sum(outcome.bytes_before or 0 for outcome in released),
        "after": sum(outcome.bytes_after or 0 for outcome in released),
        "amplify": AMPLIFY,
        "sizes": _sizes,
        "display_name": display_name,
    }
    return render_page("activation_report.html", values)


def _sections(entries: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Photos by what became of them, those that deserve a look first."""
    titles = ("Failed", "Released unchanged", "Activated, with notes", "Activated")
    sections: dict[str, list[dict[str, Any]]] = {title: [] for title in titles}
    for entry in entries:
        state = {"failed": "Failed", "unchanged": "Released unchanged"}.get(entry["outcome"].state)
        sections[state or ("Activated, with notes" if entry["remarks"] else "Activated")].append(entry)
    return {title: found for title, found in sections.items() if found}


def _means(activated: Sequence[Outcome]) -> dict[str, float]:
    """Mean quality of the activated files; none if there are none."""
    names = ("psnr", "ssim", "linf") if activated else ()
    return {name: sum(getattr(outcome, name) for outcome in activated) / len(activated) for name in names}


def _sizes(before: int, after: int) -> str:
    """The size of a file before and after: 70 KB → 73 KB (+4 %), or (×2.1)."""
    if before == after:
        return format_size(before)
    ratio = after / before
    growth = f"×{ratio:.1f}" if ratio >= 2 else f"{100 * (ratio - 1):+.0f} %".replace("-", "−")
    return f"{format_size(before)} → {format_size(after)} ({growth})"


def _pictures(outcome: Outcome) -> dict[str, str]:
    """Small pictures of a photo before and after and of the change, or of an unchanged one, as data URLs."""
    assert outcome.released is not None
    before = Photo.load(outcome.photo).pixels()
    if outcome.state == "unchanged":
        return {"unchanged": _embed_small(make_thumbnail(before, _SIDE))}
    after = Photo.load(outcome.released).pixels()
    pictures = {"before": make_thumbnail(before, _SIDE), "after": make_thumbnail(after, _SIDE)}
    if before.shape == after.shape:
        pictures[f"change ×{AMPLIFY}"] = to_image(_change(before, after))
    return {name: _embed_small(image) for name, image in pictures.items()}


def _change(before: Tensor, after: Tensor) -> Tensor:
    """The root-mean-square change around each pixel of a small picture, amplified: (3, h, w), black where none is.

    Scaled down as it is, the change would cancel out.
    """
    height, width = before.shape[-2:]
    scale = min(1.0, _SIDE / max(height, width))
    size = max(1, round(height * scale)), max(1, round(width * scale))
    squares = torch.square(after - before).mean(dim=0, keepdim=True)
    return (AMPLIFY * F.adaptive_avg_pool2d(squares, size).sqrt()).clamp(0, 1).expand(3, -1, -1)


def _embed_small(image: Image.Image) -> str:
    """A data URL of limited size."""
    for quality in _QUALITIES:
        data = encode_jpeg(image, quality, optimize=True)
        if len(data) <= _MAX_BYTES:
            break
    return data_url(data)


def _pair(query: Image.Image, match: Match, storage: Storage) -> dict[str, Any]:
    """A match with its pictures by caption, and a note that explains missing ones."""
    pictures: dict[str, Image.Image] = {}
    note = ""
    if match.state == "distractor":
        note = "A distractor: the collection has its code, but no picture."
    else:
        try:
            photo = Photo.load(match.photo)
            if (match.id, photo.sha256) not in storage.find_by_source(match.photo):
                raise PhotoError(f"{match.photo}: has changed since it was added")
            pictures, note = _match_pictures(query, make_thumbnail(photo.pixels()))
        except PhotoError as error:
            note = str(error)
    return {
        "match": match,
        "false_match_probability": format_probability(match.false_match_probability),
        "pictures": {name: embed(each) for name, each in pictures.items()},
        "note": note,
    }


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
