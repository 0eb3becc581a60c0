"""Photos in, photos to release out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from homing.activation.courses import answer_together
from homing.activation.engine import optimise
from homing.activation.recipe import Recipe
from homing.activation.release import Activation, Release
from homing.activation.requests import Judge
from homing.codebooks import Codebook
from homing.errors import PhotoError
from homing.extractors import Extractor, describe
from homing.objectives import objective_for
from homing.perception.quality import loudness
from homing.photo import Photo

Loop = Callable[..., list[Tensor]]  # called as `optimise` is


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
    views = [photo.view(extractor.device) for photo in photos]
    originals = describe(extractor, views)
    objective = objective_for(codebook, originals.to(extractor.device), margin=recipe.margin)
    changes = loop(views, extractor=extractor, objective=objective, recipe=recipe)
    loud = torch.stack([loudness(change) for change in changes]).tolist()
    judge = Judge(extractor, codebook, objective)
    standings = judge.standings(originals, range(len(photos)))
    of_each = zip(photos, views, changes, loud, standings, codebook.encode(originals), strict=True)
    return answer_together(
        [
            Release(photo, view, change, how_loud, standing, code, judge, place, recipe, format).course()
            for place, (photo, view, change, how_loud, standing, code) in enumerate(of_each)
        ]
    )
