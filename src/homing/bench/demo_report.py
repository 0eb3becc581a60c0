"""The demo's page: one HTML file with embedded pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from homing._io.files import write_atomically
from homing._io.paths import location, stored_path
from homing.bench.results.page import render
from homing.bench.retrieval import Query
from homing.collection.uploads import display_name
from homing.edits import parse
from homing.imaging import MAGNIFY, difference, embed, jnd_picture, to_image
from homing.photo import Photo

if TYPE_CHECKING:
    from homing.bench.demo import DemoResult
    from homing.collection import Outcome


@dataclass(frozen=True)
class _DemoPhoto:
    """One photo on the page: pictures as data URLs, and the copy with the largest difference in results."""

    outcome: Outcome
    pictures: dict[str, str]
    edit: str
    passive: Query
    activated: Query


def write_demo_report(result: DemoResult) -> None:
    """Write the page."""
    values = {
        "result": result,
        "recalls": list(result.rows()),
        "display_name": display_name,
        "photos": [_demo_photo(result, outcome) for outcome in result.outcomes],
    }
    write_atomically(result.report, render("demo.html", values))


def _demo_photo(result: DemoResult, outcome: Outcome) -> _DemoPhoto:
    assert outcome.released is not None
    before, after = Photo.load(outcome.photo).pixels(), Photo.load(outcome.released).pixels()
    passive, activated = _hardest_copy(result, stored_path(location(outcome.photo)))
    copy = parse(activated.edit)(to_image(after), activated.seed)
    pictures = {
        "before": to_image(before),
        "after": to_image(after),
        f"difference ×{MAGNIFY}": difference(before, after),
        "JND map": jnd_picture(before),
        f"copy: {activated.edit}": copy,
    }
    return _DemoPhoto(
        outcome, {name: embed(image) for name, image in pictures.items()}, activated.edit, passive, activated
    )


def _hardest_copy(result: DemoResult, source: str) -> tuple[Query, Query]:
    """The one-probe searches for the copy of this photo where activation made the most difference."""
    pairs = [
        (passive, activated)
        for passive, activated in zip(result.passive, result.activated, strict=True)
        if passive.source == source and passive.probes == 1
    ]
    # Edits are ordered from easy to hard: of the copies found only activated, the last is the hardest.
    gained = [pair for pair in pairs if pair[1].is_correct and not pair[0].is_correct]
    return (gained or [pair for pair in pairs if pair[1].is_correct] or pairs)[-1]
