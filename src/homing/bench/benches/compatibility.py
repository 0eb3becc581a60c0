"""Check that activating some photos of a collection does not change the results for the others."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from homing.bench.protocol.config import CodebookRun
from homing.collection import Collection, Match

MAX_PHOTOS = 24


@dataclass(frozen=True, kw_only=True)
class Compatibility:
    """Search results for passive photos before and after others in the same collection are activated.

    `before` and `after` are the recall at rank 1, with one probe, of `copies` of the passive photos; `equal` is true if
    photos and distances found are the same for every copy.
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
    """Activate half of the photos of a temporary collection and search for copies (P, E, D) of the other half.

    The collection holds at most 24 photos. The copies are of the original photos.
    """
    photos = run.originals[:MAX_PHOTOS]
    half = len(photos) // 2
    queries = torch.from_numpy(np.array(copies[half : len(photos)])).flatten(0, 1)
    expected = [os.path.abspath(photo.file) for photo in photos[half:] for _ in range(copies.shape[1])]
    with (
        run.progress(f"{run.codebook.name}: activating other photos, {recipe}", half) as advance,
        tempfile.TemporaryDirectory(dir=run.config.out, prefix=".compatibility-") as folder,
        Collection.create(Path(folder, "c.homing"), codebook=run.codebook, extractor=run.extractor) as collection,
    ):
        collection.add([photo.file for photo in photos])
        before = _nearest(collection, queries)
        activated = 0
        for number, photo in enumerate(photos[:half]):  # a folder each: two photos may have the same name
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
    """The nearest match of each of (Q, D) descriptors, with one probe."""
    return [next(iter(found), None) for found in collection.search_descriptors(descriptors, k=1, probes=1)]


def _photo_and_distance(match: Match | None) -> tuple[str, float] | None:
    return (match.photo, match.distance) if match else None


def _recall(matches: Sequence[Match | None], expected: Sequence[str]) -> float:
    correct = [match is not None and match.photo == source for match, source in zip(matches, expected, strict=True)]
    return float(np.mean(correct))
