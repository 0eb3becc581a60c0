"""The random edit: a sequence of edits, sampled as for the queries of the DISC copy detection set."""

from __future__ import annotations

import numpy as np
from PIL import Image

from homing.edits.registry import KINDS, Edit, edit

COUNTS = (0.1, 0.2, 0.3, 0.4)
"""Probabilities of one, two, three and four edits."""

RANGES: dict[str, tuple[float, float] | None] = {
    "brightness": (0.1, 1.9),
    "grayscale": None,
    "saturation": (2.0, 5.0),
    "emoji": (0.4, 0.8),
    "text": (0.1, 0.3),
    "blur": (5.0, 10.0),
    "palette": (2, 16),
    "jpeg": (5, 25),
    "edges": None,
    "pixelate": (0.2, 0.5),
    "shuffle": (0.1, 0.3),
    "fragment": (0.3, 0.6),
    "flip": None,
    "aspect": (0.5, 2.0),
    "screenshot": None,
    "pad": None,
    "perspective": (30, 60),
    "rotation": (-90, 90),
}
"""Edits that can be sampled, each with the range of its strength."""


def sample_edits(rng: np.random.Generator) -> tuple[Edit, ...]:
    """Sample one to four edits of different families, in the order in which they are applied."""
    families: dict[str, list[str]] = {}
    for name in RANGES:
        families.setdefault(KINDS[name].family, []).append(name)
    count = rng.choice(len(COUNTS), p=COUNTS) + 1
    chosen = rng.choice(sorted(families), size=count, replace=False)
    names = [str(rng.choice(families[family])) for family in chosen]
    # Crops come first, so that no overlay is cut off; the palette comes last and covers everything.
    names.sort(key=lambda name: (name != "fragment", name == "palette"))
    return tuple(Edit(name, _draw_strength(name, rng)) for name in names)


def _draw_strength(name: str, rng: np.random.Generator) -> float | None:
    span = RANGES[name]
    if span is None:
        return None
    low, high = span
    if KINDS[name].whole:
        return int(rng.integers(int(low), int(high), endpoint=True))
    # Three decimals keep the labels short.
    return round(rng.uniform(low, high), 3)


@edit("mixed")
def random(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Apply a sampled sequence of edits."""
    for step in sample_edits(rng):
        image = step(image, seed=int(rng.integers(2**32)))
    return image
