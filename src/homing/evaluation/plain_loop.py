"""The loop as the paper describes it, and as anybody would first write it: what the engine is compared with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from homing.activation import Recipe
from homing.extractors import Extractor, NetworkExtractor
from homing.objectives import Objective
from homing.perception.budgets import without_colour


def plain(views: Sequence[Tensor], *, extractor: Extractor, objective: Objective, recipe: Recipe) -> list[Tensor]:
    """The change of each (3, H, W) view, found by `plain_descent`."""
    originals = [view.to(extractor.device) for view in views]
    rooms = [recipe.budget.room(original) for original in originals]
    changes = plain_descent(originals, rooms, extractor=extractor, objective=objective, recipe=recipe)
    return [change.to(view.device) for change, view in zip(changes, views, strict=True)]


def plain_descent(
    originals: Sequence[Tensor], rooms: Sequence[Tensor], *, extractor: Extractor, objective: Objective, recipe: Recipe
) -> list[Tensor]:
    """I = I_o + room · tanh(δ), a δ as large as the photo, from 0; Adam; in single precision.

    Of the recipe it reads steps, rate and fidelity: those of the paper are meant. The network is taken layer by layer
    as its authors wrote it.
    """
    network = extractor.as_given() if isinstance(extractor, NetworkExtractor) else extractor
    # Else PyTorch rounds what convolutions multiply to 10 bits, on GPUs that are made for it.
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        return _descent(originals, rooms, network, objective, recipe)


def _descent(
    originals: Sequence[Tensor], rooms: Sequence[Tensor], network: Extractor, objective: Objective, recipe: Recipe
) -> list[Tensor]:
    # Where there is no colour, all channels move as one.
    channels = [1 if without_colour(original[None]) else 3 for original in originals]
    deltas = [torch.zeros_like(room[:count], requires_grad=True) for room, count in zip(rooms, channels, strict=True)]
    adam = torch.optim.Adam(deltas, lr=recipe.rate)
    for _ in range(recipe.steps):
        changes = [room * torch.tanh(delta) for room, delta in zip(rooms, deltas, strict=True)]
        images = [original + change for original, change in zip(originals, changes, strict=True)]
        descriptors = network(torch.stack([network.resize(image) for image in images]))
        fidelity = torch.stack([change.square().mean() for change in changes])
        adam.zero_grad()
        (objective(descriptors) + recipe.fidelity * fidelity).sum().backward()  # type: ignore[no-untyped-call]
        adam.step()
    with torch.no_grad():
        return [room * torch.tanh(delta) for room, delta in zip(rooms, deltas, strict=True)]
