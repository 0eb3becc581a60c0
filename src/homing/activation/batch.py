"""Photos in, photos to release out."""

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
from homing.extractors import Extractor, describe
from homing.objectives import objective_for
from homing.perception.quality import rms
from homing.photo import Photo

Loop = Callable[..., list[Tensor]]  # called as `optimize` is


def activate(
    photos: Sequence[Photo],
    *,
    extractor: Extractor,
    codebook: Codebook,
    recipe: Recipe,
    format: str | None = None,
    loop: Loop = optimize,
) -> list[Activation | PhotoError]:
    """Move each photo towards its own code; what comes back was measured on the bytes it holds.

    Photos are moved as one batch and may differ in size; on a CPU the same batch gives the same bytes. `format` writes
    another file format; `loop` is another one than the engine's, to compare with.
    A photo that cannot be written gives its error in place of an activation; the others are not affected.
    """
    codebook.check(extractor)
    if not photos:
        return []
    images = [photo.pixels(extractor.device) for photo in photos]
    originals = describe(extractor, images)
    objective = objective_for(codebook, originals.to(extractor.device), margin=recipe.margin)
    changes = loop(images, extractor=extractor, objective=objective, recipe=recipe)
    change_rms_values = torch.stack([rms(change) for change in changes]).tolist()
    evaluator = Evaluator(extractor, codebook, objective)
    positions = evaluator.positions(originals, range(len(photos)))
    per_photo = zip(photos, images, changes, change_rms_values, positions, codebook.encode(originals), strict=True)
    return run_coroutines(
        [
            ReleaseCheck(photo, image, change, change_rms, position, code, evaluator, index, recipe, format).run()
            for index, (photo, image, change, change_rms, position, code) in enumerate(per_photo)
        ]
    )
