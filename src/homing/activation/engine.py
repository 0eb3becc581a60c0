"""The one loop: gradient descent on pixels, under a budget. Tensors in, tensors out."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from homing._stacks import in_stacks
from homing.activation.recipe import Recipe
from homing.activation.views import Edited, randomly_edited, views_of
from homing.activation.walks import walk_of
from homing.edits.differentiable import Views
from homing.extractors import Extractor
from homing.extractors.base import images_at_once, in_loop, places_in_batch
from homing.objectives import Objective
from homing.perception.budgets import without_colour

_SEED = 0
_alone = threading.Lock()  # two loops on one GPU would wait for each other, and take twice the memory


@dataclass(frozen=True)
class Squares:
    """What the loop knows of B photos: all of one size, that of the network, whatever a camera makes."""

    pixels: Tensor
    """(B, 3, S, S), as the network sees the photos."""
    rooms: Tensor
    """(B, 3, S, S): how far each pixel may move."""
    grey: Tensor
    """(B, 1, 1, 1), whether a photo has no colour: its channels then move as one."""
    ratio: Tensor
    """(B,), the width of each photo over its height."""

    @classmethod
    def of(cls, views: Sequence[Tensor], rooms: Sequence[Tensor], extractor: Extractor) -> Squares:
        """Of (3, H, W) views and their rooms, as a budget gives them."""
        device = extractor.device
        return cls(
            torch.stack([extractor.resize(view) for view in views]).to(device),
            torch.stack([_resized(room, extractor.size) for room in rooms]).to(device),
            torch.stack(in_stacks(without_colour, views)).to(device)[:, None, None, None],
            torch.tensor([view.shape[2] / view.shape[1] for view in views], device=device),
        )

    def at(self, places: Tensor) -> Squares:
        """Those of the photos at these places, which may come more than once."""
        return Squares(self.pixels[places], self.rooms[places], self.grey[places], self.ratio[places])


def optimise(
    views: Sequence[Tensor],
    *,
    extractor: Extractor,
    objective: Objective,
    recipe: Recipe,
    edited: Edited = randomly_edited,
) -> list[Tensor]:
    """The change of each (3, H, W) view that brings its descriptor home, within the recipe's budget.

    Views may differ in size. On a CPU, the same photos in the same order give the same change. `edited` makes the
    copies, where the recipe looks at any.
    """
    rooms = in_stacks(recipe.budget.rooms, views)
    places = places_in_batch(len(views), extractor.device)
    squares, objective = Squares.of(views, rooms, extractor).at(places), objective.at(places)
    with _alone if extractor.device.type == "cuda" else nullcontext():
        patterns = descend(squares, extractor=extractor, objective=objective, recipe=recipe, edited=edited)
    patterns = patterns[: len(views)].to(views[0].device)
    return [room * _resized(pattern, *room.shape[1:]) for room, pattern in zip(rooms, patterns, strict=True)]


def descend(
    squares: Squares,
    *,
    extractor: Extractor,
    objective: Objective,
    recipe: Recipe,
    edited: Edited = randomly_edited,
) -> Tensor:
    """The pattern (B, 3, S, S) that each photo's room is to be filled with: its change is room · pattern."""
    rng = np.random.default_rng(_SEED)
    walk = walk_of(recipe, squares.rooms)
    for _ in range(recipe.steps):
        moved = Views(squares.pixels.addcmul(squares.rooms, walk.pattern), squares.ratio)
        pull = _pull(moved, recipe.views, extractor, objective, rng, edited)
        walk.step(torch.where(squares.grey, pull.mean(dim=1, keepdim=True), pull))
    return walk.arrived()


def _pull(
    squares: Views,
    count: int,
    extractor: Extractor,
    objective: Objective,
    rng: np.random.Generator,
    edited: Edited,
) -> Tensor:
    """The gradient of the objective at (B, 3, S, S) squares, mean over so many views of each."""
    pixels = squares.pixels.requires_grad_()
    at_once = max(1, images_at_once(extractor) // len(squares))
    for turn, views in enumerate(views_of(squares, count, at_once, rng, edited)):
        # Batch by batch, so that memory does not grow with the number of views.
        seen = views.detach().requires_grad_()
        parts = torch.split(in_loop(extractor, seen), len(squares))
        # The first view of all is the photo itself.
        losses = [(objective if turn == place == 0 else objective.of_copies)(part) for place, part in enumerate(parts)]
        (torch.cat(losses).sum() / count).backward()  # type: ignore[no-untyped-call]
        views.backward(seen.grad)  # type: ignore[no-untyped-call]
    assert pixels.grad is not None
    return pixels.grad


def _resized(image: Tensor, height: int, width: int | None = None) -> Tensor:
    """A (C, H, W) image at another size."""
    size = [height, width or height]
    return F.interpolate(image[None], size, mode="bilinear", antialias=True, align_corners=False)[0]
