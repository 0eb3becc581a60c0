"""homing add: index photos as they are."""

from __future__ import annotations

from homing.cli._jobs import run
from homing.cli._screen import AsJson, CollectionPath, PhotoPlaces

WORDS = {"added": "added", "known": "known already", "failed": "failed"}


def add(collection: CollectionPath, photos: PhotoPlaces, json: AsJson = False) -> None:
    """Index photos as they are, so that copies of them can be found.

    Examples:

        homing add holiday.homing photos/

        homing add holiday.homing beach.jpg sunset.png
    """
    run(collection, photos, "Adding", WORDS, json, lambda opened, report: opened.add(photos, report=report))
