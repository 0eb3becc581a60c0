"""Random edits: sequences sampled as for the queries of the DISC copy detection set, on images and on batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from homing._tensors import to_device
from homing.edits._registry import KINDS, Edit, edit
from homing.edits._views import Views

COUNTS = (0.1, 0.2, 0.3, 0.4)
"""Probabilities of one, two, three and four edits."""

Ranges = Mapping[str, tuple[float, float] | None]
"""Edits by name, each with the range of its strength."""

Weights = Mapping[str, float]
"""Relative frequencies of edits within their family, or of families; 1 where none is given."""

RANGES: Ranges = {
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
    "part": (0.3, 0.6),
    "flip": None,
    "aspect": (0.5, 2.0),
    "screenshot": None,
    "pad": None,
    "perspective": (30, 60),
    "rotation": (-90, 90),
}
"""Edits that can be sampled, each with the range of its strength."""

UNIFORM: Weights = {}
CROPS = ("crop", "part", "fragment", "rotated-fragment")


def _sort_key(name: str) -> tuple[bool, bool]:
    """Crops come first, so that no overlay is cut off; the palette comes last and covers everything."""
    return name not in CROPS, name == "palette"


def _families(names: Iterable[str]) -> dict[str, list[str]]:
    """The names of the edits of each family."""
    families: dict[str, list[str]] = {}
    for name in names:
        families.setdefault(KINDS[name].family, []).append(name)
    return families


def sample_edits(rng: np.random.Generator) -> tuple[Edit, ...]:
    """Sample one to four edits of different families, in the order in which they are applied."""
    families = _families(RANGES)
    count = rng.choice(len(COUNTS), p=COUNTS) + 1
    chosen = rng.choice(sorted(families), size=count, replace=False)
    names = sorted((str(rng.choice(families[family])) for family in chosen), key=_sort_key)
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


def random_edits(
    views: Views,
    ranges: Ranges,
    rng: np.random.Generator,
    *,
    edit_weights: Weights = UNIFORM,
    family_weights: Weights = UNIFORM,
    counts: Sequence[float] = COUNTS,
    surroundings: Tensor | None = None,
) -> Views:
    """Apply random differentiable edits to each photo; photos of a batch share only the order of the edits.

    `counts` are the probabilities of one edit, two, and so on. `surroundings` (N, 3, S, S) are pictures around the
    photos in collages and the like, drawn ones by default.
    """
    chosen = _choose_edits(len(views.pixels), ranges, rng, edit_weights, family_weights, counts)
    order = sorted(rng.permutation(list(ranges)).tolist(), key=_sort_key)
    device = views.pixels.device
    generator = torch.Generator(device).manual_seed(int(rng.integers(2**62)))
    for name in order:
        numbers = np.flatnonzero((chosen == name).any(axis=1))
        if not len(numbers):
            continue
        rows = to_device(numbers, device)
        span = ranges[name]
        strength = None if span is None else to_device(_strengths(name, span, len(numbers), rng), device)
        edited = KINDS[name].edit_views(views[rows], strength, generator, surroundings)
        views = Views(views.pixels.index_copy(0, rows, edited.pixels), views.ratio.index_copy(0, rows, edited.ratio))
    return views


def _choose_edits(
    count: int,
    ranges: Ranges,
    rng: np.random.Generator,
    edit_weights: Weights,
    family_weights: Weights,
    counts: Sequence[float],
) -> np.ndarray:
    """Names (count, families) of the edits of each photo, at most one per family; an empty string means none."""
    members = _families(ranges)
    names = np.stack(
        [rng.choice(family, count, p=_shares(family, edit_weights)) for family in members.values()], axis=1
    )
    wanted = rng.choice(len(counts), size=(count, 1), p=counts) + 1
    # Weighted sampling without replacement: the families with the smallest exponential times are taken.
    pace = np.array([family_weights.get(family, 1.0) for family in members])
    rank = (rng.exponential(size=names.shape) / pace).argsort(axis=1).argsort(axis=1)
    return np.where(rank < wanted, names, "")


def _shares(names: list[str], edit_weights: Weights) -> np.ndarray:
    weights = np.array([edit_weights.get(name, 1.0) for name in names])
    shares: np.ndarray = weights / weights.sum()
    return shares


def _strengths(name: str, span: tuple[float, float], count: int, rng: np.random.Generator) -> np.ndarray:
    low, high = span
    if not KINDS[name].whole:
        return rng.uniform(low, high, size=count).astype(np.float32)
    strengths = rng.integers(int(low), int(high), size=count, endpoint=True)
    quarters = [turn for turn in (-180, -90, 90, 180) if low <= turn <= high]
    if name == "rotation" and quarters:
        # Phones and viewers rotate by quarter turns: half of all rotations do.
        strengths = np.where(rng.random(count) < 0.5, rng.choice(quarters, size=count), strengths)
    return strengths.astype(np.float32)
