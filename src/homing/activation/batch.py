"""Activate a batch of photos: photos in, files to release out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from homing.activation.coroutines import run_coroutines
from homing.activation.optimize import optimize
from homing.activation.recipe import Recipe
from homing.activation.release_check import Activation, ReleaseCheck
from homing.activation.requests import Evaluator
from homing.codebooks import Codebook
from homing.errors import PhotoError
from homing.extractors import Extractor, describe_images
from homing.objectives import Objective, objective_for
from homing.perception.quality import rms
from homing.photo import Photo, graphic_kind

_GRAPHIC = "a graphic ({}); the option graphics activates it"

Loop = Callable[..., list[Tensor]]  # has the signature of `optimize`


def activate_batch(
    photos: Sequence[Photo],
    *,
    extractor: Extractor,
    codebook: Codebook,
    recipe: Recipe,
    format: str | None = None,
    loop: Loop = optimize,
    graphics: bool = False,
) -> list[Activation | PhotoError]:
    """Activate photos as one batch; every figure of an activation is measured on the bytes it holds.

    Photos may differ in size. On a CPU, the same batch gives the same bytes. `format` selects the file format; by
    default it is the photo's own. `loop` replaces `optimize`, for comparisons. Graphics are released
    unchanged unless `graphics` is true. A photo that cannot be written gives a PhotoError; the others are unaffected.
    """
    codebook.check(extractor)
    if not photos:
        return []
    images = [photo.pixels(extractor.device) for photo in photos]
    originals = describe_images(extractor, images)
    objective = objective_for(codebook, originals.to(extractor.device), recipe.objective)
    kinds = [None if graphics else graphic_kind(photo) for photo in photos]
    changes = _changes(loop, images, kinds, extractor=extractor, objective=objective, recipe=recipe)
    change_rms_values = torch.stack([rms(change) for change in changes]).tolist()
    evaluator = Evaluator(extractor, codebook, objective)
    positions = evaluator.positions(originals, range(len(photos)))
    per_photo = zip(photos, images, changes, change_rms_values, positions, codebook.encode(originals), strict=True)
    checks = [
        ReleaseCheck(photo, image, change, change_rms, position, code, evaluator, index, recipe, format)
        for index, (photo, image, change, change_rms, position, code) in enumerate(per_photo)
    ]
    return run_coroutines(
        [
            check.run() if kind is None else check.unchanged(_GRAPHIC.format(kind))
            for check, kind in zip(checks, kinds, strict=True)
        ]
    )


def _changes(
    loop: Loop,
    images: Sequence[Tensor],
    kinds: Sequence[str | None],
    *,
    extractor: Extractor,
    objective: Objective,
    recipe: Recipe,
) -> list[Tensor]:
    """The change of each image: of photos by the loop, zero for graphics, which have a kind."""
    photos = [index for index, kind in enumerate(kinds) if kind is None]
    if len(photos) == len(images):
        return loop(images, extractor=extractor, objective=objective, recipe=recipe)
    changes = [torch.zeros_like(image) for image in images]
    if photos:
        of_photos = objective.select(torch.tensor(photos, device=extractor.device))
        found = loop([images[index] for index in photos], extractor=extractor, objective=of_photos, recipe=recipe)
        for index, change in zip(photos, found, strict=True):
            changes[index] = change
    return changes
