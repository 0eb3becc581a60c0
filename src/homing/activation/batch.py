"""Activate a batch of photos: photos in, files to release out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from homing.activation.optimize import optimize
from homing.activation.recipe import Recipe
from homing.activation.release_check import Activation, ReleaseCheck
from homing.activation.strength import ChangedPhoto
from homing.codebooks import Codebook
from homing.errors import PhotoError
from homing.extractors import Extractor, describe_images
from homing.objectives import Objective, objective_for
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
    check = ReleaseCheck(
        ChangedPhoto.batch(photos, images, changes, format),
        originals,
        extractor=extractor,
        codebook=codebook,
        objective=objective,
        target_psnr=recipe.budget.psnr,
        refusals=[kind and _GRAPHIC.format(kind) for kind in kinds],
    )
    return check.run()


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
