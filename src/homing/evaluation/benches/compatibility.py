"""Whether activated and passive photos live together: the answers for the others stay as they are."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from homing.collection import Collection, Match
from homing.evaluation.protocol.config import CodebookRun

MAX_PHOTOS = 24


@dataclass(frozen=True, kw_only=True)
class Compatibility:
    """Whether the answers for photos stay as they are when others are activated in the same collection.

    Recall at rank 1, one probe, of `copies` of photos that stay passive, before and after `activated` others were.
    """

    codebook: str
    recipe: str
    photos: int
    activated: int
    copies: int
    before: float
    after: float
    equal: bool


def measure_compatibility(run: CodebookRun, copies: np.ndarray, recipe: str) -> Compatibility:
    """Activate half of the photos of a collection, of at most 24, and search for copies (P, E, D) of the others.

    The collection is a temporary one in the out folder. The copies are of the photos as they were.
    """
    photos = run.originals[:MAX_PHOTOS]
    half = len(photos) // 2
    queries = torch.from_numpy(np.array(copies[half : len(photos)])).flatten(0, 1)
    expected = [os.path.abspath(photo.file) for photo in photos[half:] for _ in range(copies.shape[1])]
    with (
        run.progress(f"{run.codebook.name}: activating others, {recipe}", half) as advance,
        tempfile.TemporaryDirectory(dir=run.config.out, prefix=".compatibility-") as folder,
        Collection.create(Path(folder, "c.homing"), codebook=run.codebook, extractor=run.extractor) as collection,
    ):
        collection.add([photo.file for photo in photos])
        before = _nearest(collection, queries)
        activated = 0
        for number, photo in enumerate(photos[:half]):  # a folder each: two photos may have one name
            (outcome,) = collection.activate(photo.file, Path(folder, str(number)), recipe=recipe)
            activated += outcome.state == "activated"
            advance()
        after = _nearest(collection, queries)
    return Compatibility(
        codebook=run.codebook.name,
        recipe=recipe,
        photos=len(photos),
        activated=activated,
        copies=len(queries),
        before=_recall(before, expected),
        after=_recall(after, expected),
        equal=[_photo_and_distance(each) for each in before] == [_photo_and_distance(each) for each in after],
    )


def _nearest(collection: Collection, descriptors: Tensor) -> list[Match | None]:
    """What one probe finds for each of (Q, D) descriptors."""
    return [next(iter(found), None) for found in collection.search_descriptors(descriptors, k=1, probes=1)]


def _photo_and_distance(match: Match | None) -> tuple[str, float] | None:
    return (match.photo, match.distance) if match else None


def _recall(matches: Sequence[Match | None], expected: Sequence[str]) -> float:
    correct = [match is not None and match.photo == source for match, source in zip(matches, expected, strict=True)]
    return float(np.mean(correct))
