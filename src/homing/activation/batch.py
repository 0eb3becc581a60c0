"""Activate a batch of photos, in this process or a worker: photos in, files to release out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from homing import extractors
from homing._io.parallel import MIN_ITEMS_FOR_PROCESSES
from homing.activation.optimize import optimize
from homing.activation.recipe import Recipe
from homing.activation.release_check import Activation, ReleaseCheck
from homing.activation.strength import ChangedPhoto
from homing.codebooks import Codebook
from homing.errors import PhotoError
from homing.extractors import Extractor, NetworkExtractor, describe_images
from homing.objectives import Objective, objective_for
from homing.photo import Photo, graphic_kind

_MIN_PASSES_TO_COMPILE = 500_000  # of the network
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


@dataclass(frozen=True)
class WorkerActivation:
    """`activate_batch` for worker processes, which load the extractor that the codebook names."""

    codebook: Codebook
    recipe: Recipe
    format: str | None = None
    graphics: bool = False
    compiled: bool = False
    device: str | None = None
    """The extractor's device; by default a GPU if there is one."""

    def __call__(self, photos: Sequence[Photo]) -> list[Activation | PhotoError]:
        """Activate photos as one batch."""
        return activate_batch(
            photos,
            extractor=cached_extractor(self.codebook.extractor, self.device, compiled=self.compiled),
            codebook=self.codebook,
            recipe=self.recipe,
            format=self.format,
            graphics=self.graphics,
        )


@lru_cache(maxsize=1)
def cached_extractor(name: str, device: str | None = None, *, compiled: bool = False) -> Extractor:
    """The extractor of this name, loaded once per worker."""
    extractor = extractors.load(name, device)
    return extractor.compiled() if compiled and isinstance(extractor, NetworkExtractor) else extractor


def use_processes(photos: int, device: torch.device) -> bool:
    """Whether worker processes, which take half a minute to start, pay off."""
    return device.type == "cuda" and photos >= MIN_ITEMS_FOR_PROCESSES


def should_compile(photos: int, recipe: Recipe) -> bool:
    """Whether compiling, which takes half a minute, pays off."""
    return photos * recipe.steps * recipe.eot_samples >= _MIN_PASSES_TO_COMPILE
