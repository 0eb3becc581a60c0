"""The one loop: gradient descent on pixels, under a budget. Tensors in, tensors out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from homing.activation.recipe import Recipe
from homing.activation.views import Edited, randomly_edited, views_of
from homing.edits.differentiable import Views
from homing.extractors import Extractor
from homing.extractors.base import images_at_once
from homing.objectives import Objective
from homing.perception.budgets import TYPICAL

# The loop works on photos of at most this many pixels a side, so that its memory does not grow with the camera.
WORKING_SIDE = 2048
_SEED = 0


def optimise(
    views: Sequence[Tensor],
    *,
    extractor: Extractor,
    objective: Objective,
    recipe: Recipe,
    edited: Edited = randomly_edited,
) -> list[Tensor]:
    """The change of each (3, H, W) view that brings its descriptor home, within the recipe's budget.

    Views may differ in size. The paper's loop: I = I_o + room · tanh(δ), δ from 0, Adam. On a CPU, the same photos in
    the same order give the same change. `edited` makes the copies, where the recipe looks at any.
    """
    originals = [_working_copy(view.to(extractor.device)) for view in views]
    ratio = torch.tensor([view.shape[2] / view.shape[1] for view in views], device=extractor.device)
    rng = np.random.default_rng(_SEED)
    loose = recipe.loose and recipe.budget.alpha is None  # who states how far pixels may move means each of them
    rooms = [recipe.budget.room(original) for original in originals]
    deltas = [torch.zeros_like(room, requires_grad=True) for room in rooms]
    adam = torch.optim.Adam(deltas, lr=recipe.rate)
    for _ in range(recipe.steps):
        changes = [_change(delta, room, loose) for room, delta in zip(rooms, deltas, strict=True)]
        moved = torch.stack(
            [extractor.resize(original + change) for original, change in zip(originals, changes, strict=True)]
        )
        fidelity = torch.stack([change.square().mean() for change in changes])
        pull = _pull(Views(moved.detach(), ratio), recipe.views, extractor, objective, rng, edited)
        adam.zero_grad()
        torch.autograd.backward([moved, (recipe.fidelity * fidelity).sum()], [pull, None])
        adam.step()
    with torch.no_grad():
        return [
            _change(_full_size(delta, view.shape), recipe.budget.room(view), loose).expand_as(view)
            for delta, view in zip((delta.cpu() for delta in deltas), views, strict=True)
        ]


def _change(delta: Tensor, room: Tensor, loose: bool) -> Tensor:
    """No pixel beyond its room; or each in proportion to it, and all together as loud as a change that fills it."""
    if not loose:
        return room * torch.tanh(delta)
    change = room * delta
    allowed = TYPICAL**2 * room.square().mean()
    return change * (allowed / change.square().mean().clamp_min(allowed)).sqrt()


def _pull(
    squares: Views,
    count: int,
    extractor: Extractor,
    objective: Objective,
    rng: np.random.Generator,
    edited: Edited = randomly_edited,
) -> Tensor:
    """The gradient of the objective at (B, 3, S, S) squares, mean over so many views of each."""
    pixels = squares.pixels.requires_grad_()
    at_once = max(1, images_at_once(extractor) // len(squares))
    for seen in views_of(squares, count, at_once, rng, edited):
        losses = [objective(each) for each in torch.split(extractor(seen), len(squares))]
        # Batch by batch, so that memory does not grow with the number of views.
        (torch.cat(losses).sum() / count).backward()  # type: ignore[no-untyped-call]
    assert pixels.grad is not None
    return pixels.grad


def _working_copy(view: Tensor) -> Tensor:
    shrink = WORKING_SIDE / max(view.shape[-2:])
    if shrink >= 1:
        return view
    size = [max(1, round(side * shrink)) for side in view.shape[-2:]]
    return F.interpolate(view[None], size, mode="bilinear", antialias=True, align_corners=False)[0]


def _full_size(delta: Tensor, shape: torch.Size) -> Tensor:
    if delta.shape[-2:] == shape[-2:]:
        return delta
    return F.interpolate(delta[None], shape[-2:], mode="bilinear", align_corners=False)[0]
