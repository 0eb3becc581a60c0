"""The HTML page of `homing explain --html`."""

from __future__ import annotations

from pathlib import Path

from homing._io.files import report_write_errors, write_atomically
from homing.bench.results.page import render
from homing.collection.results import format_probability
from homing.explain import Explanation, load_recorded
from homing.imaging import MAGNIFY, difference, embed, to_image


def write_page(explanation: Explanation, out: Path) -> None:
    """Write the explanation as one HTML file, with pictures of the files that still exist."""
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
    with report_write_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, render("explain.html", values))
