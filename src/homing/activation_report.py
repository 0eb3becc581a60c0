"""The report of an activation job: an HTML page with pictures before and after, or a CSV file with a row per photo."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from homing._io.files import format_size, prepare_output_file, report_write_errors, write_atomically
from homing._pages import render
from homing.collection import Outcome
from homing.collection.uploads import display_name
from homing.errors import HomingError, PhotoError, ran_out_of_memory
from homing.imaging import to_image
from homing.photo import Photo

MAX_PICTURES = 500
"""Photos with pictures on a page. In a larger job only photos with remarks have pictures."""
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


@dataclass(frozen=True)
class _Entry:
    """One photo of the page."""

    outcome: Outcome
    remarks: list[str]
    pictures: dict[str, str]


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
    data = _csv(ordered, advance) if path.suffix.lower() == ".csv" else _page(ordered, advance)
    with report_write_errors(path):
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
        writer.writerow("" if values[name] is None else values[name] for name in _COLUMNS)
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
        entries.append(_Entry(outcome, reported, pictures))
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
    return render("activation_report.html", values)


def _sections(entries: Sequence[_Entry]) -> dict[str, list[_Entry]]:
    """Photos by what became of them, those that deserve a look first."""
    sections: dict[str, list[_Entry]] = {
        "Failed": [],
        "Released unchanged": [],
        "Activated, with notes": [],
        "Activated": [],
    }
    for entry in entries:
        state = {"failed": "Failed", "unchanged": "Released unchanged"}.get(entry.outcome.state)
        sections[state or ("Activated, with notes" if entry.remarks else "Activated")].append(entry)
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
    if outcome.state == "unchanged":
        return {"unchanged": _data_url(_thumbnail(Photo.load(outcome.photo).pixels()))}
    before, after = Photo.load(outcome.photo).pixels(), Photo.load(outcome.released).pixels()
    pictures = {"before": _thumbnail(before), "after": _thumbnail(after)}
    if before.shape == after.shape:
        pictures[f"change ×{AMPLIFY}"] = _thumbnail(_change(before, after))
    return {name: _data_url(image) for name, image in pictures.items()}


def _thumbnail(pixels: Tensor) -> Image.Image:
    image = to_image(pixels)
    image.thumbnail((_SIDE, _SIDE))
    return image


def _change(before: Tensor, after: Tensor) -> Tensor:
    """The root-mean-square change around each pixel of a small picture, amplified: (3, h, w), black where none is.

    Scaled down as it is, the change would cancel out.
    """
    height, width = before.shape[-2:]
    scale = min(1.0, _SIDE / max(height, width))
    size = max(1, round(height * scale)), max(1, round(width * scale))
    squares = torch.square(after - before).mean(dim=0, keepdim=True)
    return (AMPLIFY * F.adaptive_avg_pool2d(squares, size).sqrt()).clamp(0, 1).expand(3, -1, -1)


def _data_url(image: Image.Image) -> str:
    """A JPEG of limited size as a data URL."""
    for quality in _QUALITIES:
        file = io.BytesIO()
        image.save(file, format="JPEG", quality=quality, optimize=True)
        if file.tell() <= _MAX_BYTES:
            break
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()
