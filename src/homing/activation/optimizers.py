"""How a change grows, step by step, from gradients: as a pattern that fills each pixel's bound."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from homing.activation.recipe import Recipe
from homing.perception.budgets import TYPICAL_SHARE
from homing.perception.quality import rms

MOMENTUM = 0.7


class Optimizer(Protocol):
    """Of B photos at once. The change of a photo is pixel_bound · pattern."""

    pattern: Tensor

    def step(self, gradient: Tensor) -> None:
        """Go on, given the gradient at the pixels, (B, 3, S, S)."""

    def result(self) -> Tensor:
        """The pattern to release."""


def make_optimizer(recipe: Recipe, pixel_bounds: Tensor) -> Optimizer:
    """The optimizer of a recipe in (B, 3, S, S) pixel bounds."""
    if recipe.constraint == "pixel":
        return TanhAdam(pixel_bounds, recipe.lr, recipe.image_weight)
    # Who states how far pixels may move means each of them.
    return NormalizedMomentum(
        pixel_bounds,
        recipe.lr,
        lr_step=recipe.lr / recipe.steps if recipe.lr_decay else 0.0,
        grad_power=recipe.grad_power,
        max_share=None if recipe.budget.alpha is None else 1.0,
    )


class TanhAdam:
    """The paper's: no pixel beyond its bound. The pattern is tanh δ, δ from 0, by Adam, pulled back to nothing."""

    def __init__(self, pixel_bounds: Tensor, lr: float, image_weight: float) -> None:
        self._pixel_bounds, self._image_weight = pixel_bounds, image_weight
        self._delta = torch.zeros_like(pixel_bounds)
        self._adam = torch.optim.Adam([self._delta], lr=lr, fused=pixel_bounds.is_cuda)
        self.pattern = torch.zeros_like(pixel_bounds)

    @torch.no_grad()
    def step(self, gradient: Tensor) -> None:
        """One step of Adam."""
        # Plus the gradient of the mean squared change; by the chain rule, and in place: memory is what counts.
        delta_gradient = gradient.addcmul(
            self._pixel_bounds, self.pattern, value=2 * self._image_weight / gradient[0].numel()
        ).mul_(self._pixel_bounds)
        self._delta.grad = delta_gradient.addcmul_(delta_gradient, self.pattern.square_(), value=-1)
        self._adam.step()
        self.pattern = self._delta.tanh()

    def result(self) -> Tensor:
        """As it is."""
        return self.pattern


class NormalizedMomentum:
    """Ours: a change keeps the budget as a whole, and a pixel moves by a power of its gradient.

    Adam's first steps go by the sign alone: pixels that hardly matter move as far as those that do, and what they cost
    is missing elsewhere. With few steps in proportion to the gradient (`grad_power` 1) a few pixels would take
    all; with many, of many copies each, others have their turn. Each step has the RMS of the budget
    times `lr`, so that it needs no tuning to a network; what grows too large is scaled down. Where copies are
    drawn anew at each step, the last ones would blur what all of them have in common: from step to step the lr
    falls by `lr_step`. Where there is a `max_share`, no pixel goes beyond that share of its bound all the same.
    """

    def __init__(
        self,
        pixel_bounds: Tensor,
        lr: float,
        *,
        lr_step: float = 0.0,
        grad_power: float = 0.5,
        max_share: float | None = None,
    ) -> None:
        self._pixel_bounds, self._lr, self._lr_step, self._grad_power, self._max_share = (
            pixel_bounds,
            lr,
            lr_step,
            grad_power,
            max_share,
        )
        self._target_rms = TYPICAL_SHARE * _rms_per_image(pixel_bounds)
        self._velocity = torch.zeros_like(pixel_bounds)
        self.pattern = torch.zeros_like(pixel_bounds)

    @torch.no_grad()
    def step(self, gradient: Tensor) -> None:
        """One step with momentum."""
        step = gradient.sign() * gradient.abs().pow(self._grad_power)
        self._velocity.mul_(MOMENTUM).add_(step * self._scale(step), alpha=-self._lr)
        self._lr -= self._lr_step
        self.pattern = self.pattern + self._velocity
        self.pattern *= self._scale(self.pattern).clamp_max(1)

    def result(self) -> Tensor:
        """As loud as is allowed."""
        pattern = self.pattern * self._scale(self.pattern)
        return pattern if self._max_share is None else pattern.clamp(-self._max_share, self._max_share)

    def _scale(self, pattern: Tensor) -> Tensor:
        """What makes patterns as loud as is allowed; a pattern of nothing stays nothing."""
        return self._target_rms / _rms_per_image(self._pixel_bounds * pattern).clamp_min(1e-12)


def _rms_per_image(changes: Tensor) -> Tensor:
    """How loud (B, 3, S, S) changes are: (B, 1, 1, 1)."""
    return rms(changes)[:, None, None, None]
