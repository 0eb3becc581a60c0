"""Random edits of batches: one to four per photo, of different families, as in disc.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from homing._io.device import to_device
from homing.edits.differentiable.views import DIFFERENTIABLE_EDITS, Views
from homing.edits.disc import COUNTS
from homing.edits.registry import KINDS

Ranges = Mapping[str, tuple[float, float] | None]
"""Edits by name, each with the range of its strength."""

Weights = Mapping[str, float]
"""Relative frequencies of edits within their family, or of families; 1 where none is given."""

UNIFORM: Weights = {}
CROPS = ("crop", "fragment")


def random_edits(
    views: Views,
    ranges: Ranges,
    rng: np.random.Generator,
    *,
    edit_weights: Weights = UNIFORM,
    family_weights: Weights = UNIFORM,
    counts: Sequence[float] = COUNTS,
) -> Views:
    """Apply random edits to each photo; photos of a batch share only the order of the edits.

    `counts` are the probabilities of one edit, two, and so on. Crops come first, so that no overlay is cut off, and
    palettes last, as in the exact edit.
    """
    chosen = _choose_edits(len(views.pixels), ranges, rng, edit_weights, family_weights, counts)
    order = rng.permutation(list(ranges)).tolist()
    order.sort(key=lambda name: (name not in CROPS, name == "palette"))
    device = views.pixels.device
    generator = torch.Generator(device).manual_seed(int(rng.integers(2**62)))
    for name in order:
        numbers = np.flatnonzero((chosen == name).any(axis=1))
        if not len(numbers):
            continue
        rows = to_device(numbers, device)
        span = ranges[name]
        strength = None if span is None else to_device(_strengths(name, span, len(numbers), rng), device)
        edited = DIFFERENTIABLE_EDITS[name](views[rows], strength, generator)
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
    members: dict[str, list[str]] = {}
    for name in ranges:
        members.setdefault(KINDS[name].family, []).append(name)
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
