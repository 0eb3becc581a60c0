"""The paper's loop, implemented directly: the baseline of the speed bench."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from homing.activation import Recipe
from homing.extractors import Extractor, NetworkExtractor
from homing.objectives import Objective
from homing.perception.budgets import is_grayscale


def plain(images: Sequence[Tensor], *, extractor: Extractor, objective: Objective, recipe: Recipe) -> list[Tensor]:
    """The change of each (3, H, W) image, by `plain_descent`."""
    originals = [pixels.to(extractor.device) for pixels in images]
    pixel_bounds = [recipe.budget.pixel_bound(original) for original in originals]
    changes = plain_descent(originals, pixel_bounds, extractor=extractor, objective=objective, recipe=recipe)
    return [change.to(pixels.device) for change, pixels in zip(changes, images, strict=True)]


def plain_descent(
    originals: Sequence[Tensor],
    pixel_bounds: Sequence[Tensor],
    *,
    extractor: Extractor,
    objective: Objective,
    recipe: Recipe,
) -> list[Tensor]:
    """I = I_o + pixel_bound · tanh(δ), with δ of the photo's size, initially 0; Adam, in single precision.

    Only steps, lr and image_weight of the recipe are used, as in recipe paper. Layers of the network are not fused.
    """
    network = extractor.unfolded() if isinstance(extractor, NetworkExtractor) else extractor
    # TF32 would round the inputs of convolutions to 10 bits on recent GPUs.
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        return _descent(originals, pixel_bounds, network, objective, recipe)


def _descent(
    originals: Sequence[Tensor],
    pixel_bounds: Sequence[Tensor],
    network: Extractor,
    objective: Objective,
    recipe: Recipe,
) -> list[Tensor]:
    # Gray photos stay gray: one change for all channels.
    channels = [1 if is_grayscale(original[None]) else 3 for original in originals]
    deltas = [
        torch.zeros_like(pixel_bound[:count], requires_grad=True)
        for pixel_bound, count in zip(pixel_bounds, channels, strict=True)
    ]
    adam = torch.optim.Adam(deltas, lr=recipe.lr)
    for _ in range(recipe.steps):
        changes = [pixel_bound * torch.tanh(delta) for pixel_bound, delta in zip(pixel_bounds, deltas, strict=True)]
        images = [original + change for original, change in zip(originals, changes, strict=True)]
        descriptors = network(torch.stack([network.resize(image) for image in images]))
        image_loss = torch.stack([change.square().mean() for change in changes])
        adam.zero_grad()
        (objective(descriptors) + recipe.image_weight * image_loss).sum().backward()  # type: ignore[no-untyped-call]
        adam.step()
    with torch.no_grad():
        return [pixel_bound * torch.tanh(delta) for pixel_bound, delta in zip(pixel_bounds, deltas, strict=True)]
