"""Photos in, photos to release out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from torch import Tensor

from homing.activation.engine import optimise
from homing.activation.recipe import Recipe
from homing.activation.release import Activation, Release
from homing.codebooks import Codebook
from homing.errors import PhotoError, ran_out_of_memory
from homing.extractors import Extractor, describe
from homing.objectives import objective_for
from homing.photo import Photo

BATCH = 8
BATCH_PIXELS = 8_000_000  # several small photos or one large one are moved at a time

Loop = Callable[..., list[Tensor]]  # called as `optimise` is
Item = TypeVar("Item")
Other = TypeVar("Other")
Result = TypeVar("Result")


def activate(
    photos: Sequence[Photo],
    *,
    extractor: Extractor,
    codebook: Codebook,
    recipe: Recipe,
    format: str | None = None,
    loop: Loop = optimise,
) -> list[Activation | PhotoError]:
    """Move each photo towards its own code; what comes back was measured on the bytes it holds.

    Photos are moved as one batch and may differ in size; on a CPU the same batch gives the same bytes. `format` writes
    another file format; `loop` is another one than the engine's, to compare with.
    A photo that cannot be written gives its error in place of an activation; the others are not affected.
    """
    codebook.check(extractor)
    if not photos:
        return []
    views = [photo.view() for photo in photos]
    originals = describe(extractor, views)
    objective = objective_for(codebook, originals.to(extractor.device), margin=recipe.margin)
    changes = loop(views, extractor=extractor, objective=objective, recipe=recipe)
    results: list[Activation | PhotoError] = []
    for photo, view, change, original in zip(photos, views, changes, originals, strict=True):
        release = Release(photo, view, change, original, extractor=extractor, codebook=codebook, margin=recipe.margin)
        try:
            results.append(release.decide(recipe.budget, format))
        except PhotoError as error:
            results.append(error)
    return results


def in_batches(
    items: Iterable[tuple[Item, Photo | Other]], move: Callable[[Sequence[Photo]], Sequence[Result | PhotoError]]
) -> Iterator[list[tuple[Item, Result | PhotoError | Other]]]:
    """Each item with what `move`, such as `activate` with its settings, makes of its photo; batch by batch.

    What stands in the place of a photo is passed on at once, alone. Where the memory does not suffice for a batch, each
    of its photos gives an error.
    """
    batch: list[tuple[Item, Photo]] = []
    pixels = 0
    for item, photo in items:
        if not isinstance(photo, Photo):
            yield [(item, photo)]
            continue
        size = photo.pixels.shape[0] * photo.pixels.shape[1]
        if batch and (len(batch) == BATCH or pixels + size > BATCH_PIXELS):
            yield [*_moved(batch, move)]
            batch, pixels = [], 0
        batch.append((item, photo))
        pixels += size
    if batch:
        yield [*_moved(batch, move)]


def _moved(
    batch: Sequence[tuple[Item, Photo]], move: Callable[[Sequence[Photo]], Sequence[Result | PhotoError]]
) -> Iterable[tuple[Item, Result | PhotoError]]:
    photos = [photo for _, photo in batch]
    results: Sequence[Result | PhotoError]
    try:
        results = move(photos)
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
        results = [PhotoError(f"{photo.name}: too large for the memory there is") for photo in photos]
    return zip((item for item, _ in batch), results, strict=True)
