"""How a change grows, step by step, from gradients: as a pattern that fills the room each pixel has."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from homing.activation.recipe import Recipe
from homing.perception.budgets import TYPICAL
from homing.perception.quality import loudness

MOMENTUM = 0.7


class Walk(Protocol):
    """Of B photos at once. The change of a photo is room · pattern."""

    pattern: Tensor

    def step(self, pull: Tensor) -> None:
        """Go on, given the gradient at the pixels, (B, 3, S, S)."""

    def arrived(self) -> Tensor:
        """The pattern to release."""


def walk_of(recipe: Recipe, rooms: Tensor) -> Walk:
    """The recipe's way to walk in (B, 3, S, S) rooms."""
    if not recipe.loose:
        return Bounded(rooms, recipe.rate, recipe.fidelity)
    # Who states how far pixels may move means each of them.
    return Loose(
        rooms,
        recipe.rate,
        fade=recipe.rate / recipe.steps if recipe.fading else 0.0,
        power=recipe.power,
        most=None if recipe.budget.alpha is None else 1.0,
    )


class Bounded:
    """The paper's: no pixel beyond its room. The pattern is tanh δ, δ from 0, by Adam, with a pull back to nothing."""

    def __init__(self, rooms: Tensor, rate: float, fidelity: float) -> None:
        self._rooms, self._fidelity = rooms, fidelity
        self._delta = torch.zeros_like(rooms)
        self._adam = torch.optim.Adam([self._delta], lr=rate, fused=rooms.is_cuda)
        self.pattern = torch.zeros_like(rooms)

    @torch.no_grad()
    def step(self, pull: Tensor) -> None:
        """One step of Adam."""
        # Beside it the pull of the mean squared change; by the chain rule, and in place: memory is what counts.
        slope = pull.addcmul(self._rooms, self.pattern, value=2 * self._fidelity / pull[0].numel()).mul_(self._rooms)
        self._delta.grad = slope.addcmul_(slope, self.pattern.square_(), value=-1)
        self._adam.step()
        self.pattern = self._delta.tanh()

    def arrived(self) -> Tensor:
        """As it is."""
        return self.pattern


class Loose:
    """Ours: a change keeps the budget as a whole, and a pixel moves by a power of its gradient.

    Adam's first steps go by the sign alone: pixels that hardly matter move as far as those that do, and what they cost
    is missing elsewhere. In a few steps in proportion to the gradient, its `power` 1, a few pixels would take all; in
    many, of many copies each, others have their turn. Each step is as loud as the
    budget times `rate`, so that it needs no tuning to a network; what grows too loud is scaled down. Where copies are
    drawn anew at each step, the last ones would blur what all of them have in common: from step to step the rate
    `fade`s. Where there is a `most`, no pixel goes beyond that share of its room all the same.
    """

    def __init__(
        self, rooms: Tensor, rate: float, *, fade: float = 0.0, power: float = 0.5, most: float | None = None
    ) -> None:
        self._rooms, self._rate, self._fade, self._power, self._most = rooms, rate, fade, power, most
        self._allowed = TYPICAL * _of_each(rooms)
        self._velocity = torch.zeros_like(rooms)
        self.pattern = torch.zeros_like(rooms)

    @torch.no_grad()
    def step(self, pull: Tensor) -> None:
        """One step with momentum."""
        step = pull.sign() * pull.abs().pow(self._power)
        self._velocity.mul_(MOMENTUM).add_(step * self._gain(step), alpha=-self._rate)
        self._rate -= self._fade
        self.pattern = self.pattern + self._velocity
        self.pattern *= self._gain(self.pattern).clamp_max(1)

    def arrived(self) -> Tensor:
        """As loud as is allowed."""
        pattern = self.pattern * self._gain(self.pattern)
        return pattern if self._most is None else pattern.clamp(-self._most, self._most)

    def _gain(self, pattern: Tensor) -> Tensor:
        """What makes patterns as loud as is allowed; a pattern of nothing stays nothing."""
        return self._allowed / _of_each(self._rooms * pattern).clamp_min(1e-12)


def _of_each(changes: Tensor) -> Tensor:
    """How loud (B, 3, S, S) changes are: (B, 1, 1, 1)."""
    return loudness(changes)[:, None, None, None]
